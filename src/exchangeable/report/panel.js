/* The live panel: set what is known, see the answers. */

const PAGE = 60;

class Panel {
  constructor(model, data) {
    this.model = model;
    this.what = data.what;
    this.evidence = new Int8Array(model.names.length).fill(-1);
    this.given = -1;
    this.nothing = model.answer(this.evidence);
    this.limit = PAGE;
    this.find("search").addEventListener("input", () => { this.limit = PAGE; this.list(); });
    this.find("order").addEventListener("change", () => { this.limit = PAGE; this.list(); });
    this.find("clear").addEventListener("click", () => { this.evidence.fill(-1); this.setClass(-1); this.list(); });
    const given = this.find("given");
    this.find("given-title").textContent = data.what;
    given.append(make("option", { value: -1, text: "not known" }), ...model.titles.map((text, value) => make("option", { value, text })));
    given.addEventListener("change", () => this.setClass(Number(given.value)));
    this.find("classes-title").textContent = `Which ${this.what}`;
    this.update();
    this.list();
  }

  find(id) { return document.getElementById(id); }

  set(j, value) { this.evidence[j] = value; this.update(); }

  setClass(y) {
    this.given = y;
    this.find("given").value = y;
    this.update();
  }

  /* The variables to list, in the chosen order. */
  chosen() {
    const wanted = this.find("search").value.trim().toLowerCase();
    const { names } = this.model, before = this.nothing.marginals, now = this.result;
    const chance = now.possible ? now.marginals : before;
    let found = names.map((_, j) => j);
    if (wanted) found = found.filter((j) => names[j].toLowerCase().includes(wanted));
    const order = this.find("order").value;
    if (order === "name") found.sort((a, b) => names[a].localeCompare(names[b]) || a - b);
    if (order === "chance") found.sort((a, b) => chance[b] - chance[a] || a - b);
    if (order === "gain" && now.possible) found.sort((a, b) => now.gains[b] - now.gains[a] || a - b);
    if (order === "moved") {
      found.sort((a, b) => Math.abs(chance[b] - before[b]) - Math.abs(chance[a] - before[a]) || a - b);
    }
    return found;
  }

  list() {
    const found = this.chosen(), box = this.find("variables");
    this.rows = found.slice(0, this.limit).map((j) => this.row(j));
    box.replaceChildren(...this.rows.map((row) => row.node));
    const more = this.find("variables-more"), left = found.length - this.rows.length;
    more.textContent = `${found.length.toLocaleString("en")} variables${left > 0 ? `, ${this.rows.length} shown` : ""}`;
    if (left > 0) {
      more.append(make("button", { type: "button", text: "Show more", onclick: () => { this.limit += 200; this.list(); } }));
    }
    this.refresh();
  }

  row(j) {
    const name = this.model.names[j];
    const group = make("fieldset", { class: "set", role: "radiogroup", "aria-label": name });
    for (const [value, text, meaning] of [["-1", "?", "unknown"], ["0", "0", "off"], ["1", "1", "on"]]) {
      const input = make("input", { type: "radio", name: `v${j}`, value, "aria-label": meaning });
      input.addEventListener("change", () => this.set(j, Number(value)));
      group.append(make("label", { title: meaning }, input, make("span", { text, "aria-hidden": "true" })));
    }
    const bar = meter(0, this.nothing.marginals[j]), number = make("span", { class: "number" });
    const node = make("li", {}, make("span", { class: "name", text: name, title: name }), group, bar, number);
    node.dataset.variable = j;
    return { j, node, group, fill: bar.firstChild, number };
  }

  update() {
    this.result = this.model.answer(this.evidence, this.given);
    this.refresh();
    this.known();
    this.classes();
    this.next();
    this.completion();
  }

  refresh() {
    for (const row of this.rows || []) {
      const value = this.evidence[row.j];
      row.node.className = value < 0 ? "" : "known";
      row.group.querySelector(`input[value="${value}"]`).checked = true;
      const p = this.result.possible ? this.result.marginals[row.j] : NaN;
      row.fill.style.width = `${100 * (p || 0)}%`;
      row.number.textContent = this.result.possible ? shown(p) : "–";
    }
  }

  known() {
    const chips = [];
    this.evidence.forEach((value, j) => {
      if (value < 0) return;
      const text = `${this.model.names[j]} ${value ? "on" : "off"} ×`;
      chips.push(make("button", { type: "button", class: value ? "yes" : "no", text, title: "Forget this", onclick: () => this.set(j, -1) }));
    });
    const box = this.find("known");
    box.replaceChildren(...(chips.length ? chips : [make("span", { text: "nothing yet" })]));
    this.find("clear").disabled = !chips.length && this.given < 0;
    this.find("log-evidence").textContent = this.result.possible ? fixed(this.result.logEvidence, 4) : "impossible";
  }

  classes() {
    const box = this.find("classes");
    if (!this.result.possible) {
      box.replaceChildren(make("li", { text: "The model gives what is known probability 0." }));
      this.find("best-class").textContent = "";
      this.find("in-sight").textContent = "Impossible: the model gives what is known probability 0.";
      return;
    }
    const { posterior } = this.result;
    for (const id of ["best-class", "in-sight"]) this.find(id).textContent = this.bestClass();
    const order = Array.from(posterior.keys()).sort((a, b) => posterior[b] - posterior[a] || a - b);
    const rows = order.slice(0, 12).map((y, i) => make("li", i ? {} : { class: "best" },
      make("span", { class: "name", text: this.model.classes[y], title: this.model.classes[y] }),
      meter(posterior[y], this.nothing.posterior[y]),
      make("span", { class: "number", text: shown(posterior[y]) })));
    if (order.length > 12) rows.push(make("li", {}, make("span", { class: "quiet", text: `and ${order.length - 12} more` })));
    box.replaceChildren(...rows);
  }

  /* The variables that would tell most about the class, each with its two answers. */
  next() {
    const { posterior, gains } = this.result, list = this.find("next"), text = this.find("next-text");
    const open = this.result.possible ? posterior.reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0) : 0;
    const most = open > 1e-9 ? Array.from(gains.keys()).filter((j) => gains[j] > 1e-9) : [];
    most.sort((a, b) => gains[b] - gains[a] || a - b);
    text.textContent = most.length
      ? `What tells most about the ${this.what}: how much of the uncertainty the answer removes on average.`
      : this.given >= 0 || open <= 1e-9 ? `Nothing: the ${this.what} is certain.` : `Nothing that is still open tells more about the ${this.what}.`;
    list.replaceChildren(...most.slice(0, 5).map((j) => make("li", {},
      make("span", { class: "name", text: this.model.names[j], title: this.model.names[j] }),
      make("span", { class: "number", text: `${fixed((100 * gains[j]) / open, 1)} %` }),
      ...[0, 1].map((value) => make("button", { type: "button", text: value, "aria-label": `${this.model.names[j]} is ${value ? "on" : "off"}`, onclick: () => this.set(j, value) })))));
  }

  completion() {
    const box = this.find("completion"), text = this.find("completion-text");
    if (!this.result.possible) { box.replaceChildren(); text.textContent = this.find("two-maxima").textContent = ""; return; }
    const { completion, completionClass, completionLogProb } = this.result;
    const on = Array.from(completion.keys()).filter((j) => completion[j]);
    text.textContent = `${on.length} of ${completion.length} on, ${this.model.titles[completionClass]}, log-probability ${fixed(completionLogProb, 4)}`;
    const chips = on.slice(0, 150).map((j) => make("span", { class: this.evidence[j] === 1 ? "yes" : "", text: this.model.names[j] }));
    if (on.length > 150) chips.push(make("span", { text: `and ${on.length - 150} more` }));
    box.replaceChildren(...chips);
    this.find("two-maxima").textContent = this.twoMaxima();
  }

  short(y) { return this.what === "class" ? this.model.classes[y] : y; }

  /* The class with the highest posterior probability, in words. */
  bestClass() {
    const best = highestAt(this.result.posterior);
    if (this.given >= 0) return `The ${this.what} is known: ${this.short(this.given)}.`;
    return `Most probable ${this.what}: ${this.short(best)}, with probability ${shown(this.result.posterior[best])}.`;
  }

  /* Why the most probable class need not be that of the most probable completion. */
  twoMaxima() {
    const best = highestAt(this.result.posterior), { completionClass } = this.result;
    if (best === completionClass) return "";
    const { titles } = this.model;
    return `This completion belongs to ${titles[completionClass]}, although ${titles[best]} is the most probable ${this.what}. Both are right: a completion is one single row with its ${this.what} and is judged by their joint probability, whereas the probability of a ${this.what} adds up all rows that agree with what is known. In ${titles[best]} they are many, none of them more probable than this one.`;
  }
}

/* Where the highest value stands, the first of several. */
function highestAt(values) {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}
