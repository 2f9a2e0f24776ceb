/* The live panel: set what is known, see the answers. */

const PAGE = 60;
const SMALL = { width: 96, height: 24, labels: false }, LARGE = { width: 420, height: 150, labels: true };

class Panel {
  constructor(model, data) {
    this.model = model;
    this.what = data.what;
    this.evidence = new Float64Array(model.names.length).fill(NaN);
    this.given = -1;
    this.nothing = model.answer(this.evidence);
    this.limit = PAGE;
    this.find("search").addEventListener("input", () => { this.limit = PAGE; this.list(); });
    this.find("order").addEventListener("change", () => { this.limit = PAGE; this.list(); });
    this.find("clear").addEventListener("click", () => { this.evidence.fill(NaN); this.setClass(-1); this.list(); });
    const given = this.find("given");
    this.find("given-title").textContent = data.what;
    given.append(make("option", { value: -1, text: "not known" }), ...model.titles.map((text, value) => make("option", { value, text })));
    given.addEventListener("change", () => this.setClass(Number(given.value)));
    this.find("classes-title").textContent = `Which ${this.what}`;
    this.kinds();
    this.update();
    this.list();
  }

  find(id) { return document.getElementById(id); }

  /* What pages about columns of other kinds have, and those about binary columns have not. */
  kinds() {
    const { binary, columns, names } = this.model, column = this.find("column");
    this.measure = columns.some(({ kind }) => kind === "continuous") ? "log-density" : "log-probability";
    this.find("evidence-word").textContent = this.measure;
    if (binary) return;
    this.find("variables").classList.add("kinds");
    this.find("order").querySelector("[value=chance]").remove();
    this.find("column-card").hidden = false;
    column.append(...names.map((text, value) => make("option", { value, text })));
    column.addEventListener("change", () => this.column());
  }

  set(j, value) { this.evidence[j] = value; this.update(); }

  setClass(y) {
    this.given = y;
    this.find("given").value = y;
    this.update();
  }

  /* The variables to list, in the chosen order. */
  chosen() {
    const wanted = this.find("search").value.trim().toLowerCase();
    const { names, columns } = this.model, before = this.nothing, now = this.result.possible ? this.result : before;
    let found = names.map((_, j) => j);
    if (wanted) found = found.filter((j) => names[j].toLowerCase().includes(wanted));
    const order = this.find("order").value;
    const by = (key) => { const keys = found.map(key), rank = new Map(found.map((j, i) => [j, keys[i]])); found.sort((a, b) => rank.get(b) - rank.get(a) || a - b); };
    if (order === "name") found.sort((a, b) => names[a].localeCompare(names[b]) || a - b);
    if (order === "chance") by((j) => now.marginals[j]);
    if (order === "gain") by((j) => now.gains[j]);
    if (order === "moved") by((j) => (this.model.binary ? Math.abs(now.marginals[j] - before.marginals[j]) : columns[j].moved(now.told[j], before.told[j])));
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
    const { names, columns, binary } = this.model;
    const [control, show] = columns[j].control(names[j], j, (value) => this.set(j, value));
    const picture = binary ? meter(0, this.nothing.marginals[j]) : make("div", { class: "picture" }), number = make("span", { class: "number" });
    const node = make("li", {}, make("span", { class: "name", text: names[j], title: names[j] }), control, picture, number);
    if (!binary) picture.addEventListener("click", () => { this.find("column").value = j; this.column(); });
    node.dataset.variable = j;
    return { j, node, control, show, picture, number };
  }

  update() {
    this.result = this.model.answer(this.evidence, this.given);
    this.refresh();
    this.known();
    this.classes();
    this.next();
    this.completion();
    this.column();
  }

  refresh() {
    const { possible, marginals, told } = this.result, { binary, columns } = this.model;
    for (const { j, node, show, picture, number } of this.rows || []) {
      const value = this.evidence[j], known = !unknown(value);
      node.className = known ? "known" : "";
      show(value, possible ? told[j] : null);
      if (binary) {
        picture.firstChild.style.width = `${possible ? 100 * marginals[j] : 0}%`;
        number.textContent = possible ? shown(marginals[j]) : "–";
      } else {
        picture.replaceChildren(...(possible ? [drawDistribution(columns[j], told[j], this.nothing.told[j], value, SMALL)] : []));
        number.textContent = known ? columns[j].text(value) : possible ? columns[j].summary(told[j]) : "–";
        number.title = number.textContent;
      }
    }
  }

  /* A column's value in words, after its name. */
  words(j, value) {
    const column = this.model.columns[j];
    return column.plain ? `${this.model.names[j]} ${value ? "on" : "off"}` : `${this.model.names[j]} = ${column.text(value)}`;
  }

  known() {
    const chips = [];
    this.evidence.forEach((value, j) => {
      if (unknown(value)) return;
      const kind = this.model.columns[j].plain && value === 0 ? "no" : "yes";
      chips.push(make("button", { type: "button", class: kind, text: `${this.words(j, value)} ×`, title: "Forget this", onclick: () => this.set(j, NaN) }));
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

  /* The variables that would tell most about the class, each with its answers. */
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
      make("span", { class: "number", text: `${fixed((100 * gains[j]) / open, 1)} %` }), ...this.replies(j))));
  }

  /* Buttons that answer a question, or one that leads to where it is answered. */
  replies(j) {
    const name = this.model.names[j];
    if (this.model.columns[j].plain) {
      return [0, 1].map((value) => make("button", { type: "button", text: value, "aria-label": `${name} is ${value ? "on" : "off"}`, onclick: () => this.set(j, value) }));
    }
    return [make("button", { type: "button", class: "reply", text: "Answer", "aria-label": `Answer ${name}`, onclick: () => this.lead(j) })];
  }

  lead(j) {
    this.find("search").value = this.model.names[j];
    this.list();
    const { node, control } = this.rows.find((row) => row.j === j);
    node.scrollIntoView({ block: "center" });
    (control.matches("select, input") ? control : control.querySelector("select, input")).focus();
  }

  completion() {
    const box = this.find("completion"), text = this.find("completion-text");
    if (!this.result.possible) { box.replaceChildren(); text.textContent = this.find("two-maxima").textContent = ""; return; }
    const { completion, completionClass, completionLogProb } = this.result, { binary, names, titles } = this.model;
    const listed = Array.from(completion.keys()).filter((j) => !binary || completion[j]);
    const count = binary ? `${listed.length} of ${completion.length} on, ` : "";
    text.textContent = `${count}${titles[completionClass]}, ${this.measure} ${fixed(completionLogProb, 4)}${this.gap()}`;
    const chips = listed.slice(0, 150).map((j) => make("span", { class: unknown(this.evidence[j]) ? "" : "yes", text: binary ? names[j] : this.words(j, completion[j]) }));
    if (listed.length > 150) chips.push(make("span", { text: `and ${listed.length - 150} more` }));
    box.replaceChildren(...chips);
    this.find("two-maxima").textContent = this.twoMaxima();
  }

  /* Where a search has ended early: by how much another completion could be better at most. */
  gap() {
    const { completionGap } = this.result;
    return completionGap > 0 ? `. It is the best that was found; none exceeds it by more than ${fixed(completionGap, 4)}` : "";
  }

  /* The distribution of one column, large enough to be read. */
  column() {
    if (this.model.binary) return;
    const j = Number(this.find("column").value), { columns } = this.model, text = this.find("column-text"), box = this.find("column-chart");
    if (!this.result.possible) { text.textContent = ""; box.replaceChildren(); return; }
    const column = columns[j], told = this.result.told[j], value = this.evidence[j];
    box.replaceChildren(drawDistribution(column, told, this.nothing.told[j], value, LARGE));
    if (told === null) text.textContent = `Known: ${column.text(value)}.`;
    else if (column.kind === "continuous") text.textContent = `Mean ${brief(told.mean)}, standard deviation ${brief(told.deviation)}.`;
    else if (column.kind === "count") text.textContent = `Mean ${brief(told.mean)}; most probable: ${highestAt(told.shares)}.`;
    else text.textContent = `Most probable: ${column.levels[highestAt(told.shares)]}, with probability ${shown(Math.max(...told.shares))}.`;
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
