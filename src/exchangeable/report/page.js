/* Overview, list of blocks, and the start of everything. */

class Blocks {
  constructor(data) {
    this.names = data.names;
    this.titles = data.titles;
    this.parts = layOut(unpack(data.labels), data.names.length);
    this.logq = unpack(data.logq);
    this.logFactorial = logFactorials(data.names.length);
    this.sort = ["size", -1];
    this.limit = PAGE;
    const which = this.find("which");
    data.titles.forEach((label, y) => which.append(make("option", { value: y, text: label })));
    which.addEventListener("change", () => this.open(Number(which.value)));
    this.find("block-search").addEventListener("input", () => { this.limit = PAGE; this.list(); });
    for (const button of document.querySelectorAll("[data-sort]")) {
      button.addEventListener("click", () => {
        const key = button.dataset.sort;
        this.sort = [key, this.sort[0] === key ? -this.sort[1] : key === "number" ? 1 : -1];
        this.list();
      });
    }
    this.open(0);
  }

  find(id) { return document.getElementById(id); }

  /* Probabilities of each number of ones in a block. */
  counts(y, b) {
    const { starts, sizes } = this.parts[y];
    return this.logq.subarray(starts[b], starts[b] + sizes[b] + 1).map(Math.exp);
  }

  open(y) {
    this.y = y;
    const part = this.parts[y], members = part.sizes.map(() => []);
    part.labels.forEach((b, j) => members[b].push(j));
    this.blocks = members.map((variables, number) => ({ number, variables, size: variables.length, ...moments(this.counts(y, number)) }));
    this.limit = PAGE;
    this.list();
    const largest = this.blocks.reduce((best, block) => (block.size > best.size ? block : best));
    this.choose(largest.number);
  }

  list() {
    const wanted = this.find("block-search").value.trim().toLowerCase(), { names } = this;
    const holds = (block) => block.variables.some((j) => names[j].toLowerCase().includes(wanted));
    const [key, sign] = this.sort;
    const found = this.blocks.filter((block) => !wanted || holds(block));
    found.sort((a, b) => sign * (a[key] - b[key]) || a.number - b.number);
    this.find("block-rows").replaceChildren(...found.slice(0, this.limit).map((block) => this.row(block)));
    for (const button of document.querySelectorAll("[data-sort]")) {
      const head = button.parentElement;
      if (button.dataset.sort === key) head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    const more = this.find("blocks-more"), left = found.length - this.limit;
    more.textContent = `${found.length.toLocaleString("en")} blocks`;
    if (left > 0) more.append(make("button", { type: "button", text: "Show more", onclick: () => { this.limit += 200; this.list(); } }));
  }

  row(block) {
    const { names } = this;
    const listed = block.variables.slice(0, 12).map((j) => names[j]).join(", ") + (block.size > 12 ? ", …" : "");
    const button = make("button", { type: "button", text: block.number, "aria-label": `Show block ${block.number}`, onclick: () => this.choose(block.number) });
    const node = make("tr", block.number === this.chosen ? { class: "chosen" } : {},
      make("td", {}, button), make("td", { text: block.size.toLocaleString("en") }), make("td", { text: shown(block.mean) }),
      make("td", { text: block.size > 1 ? fixed(block.correlation, 3) : "" }), make("td", { class: "wide", text: listed, title: listed }));
    node.dataset.block = block.number;
    return node;
  }

  choose(number) {
    this.chosen = number;
    for (const row of document.querySelectorAll("#block-rows tr")) row.className = Number(row.dataset.block) === number ? "chosen" : "";
    const block = this.blocks[number], { names, titles } = this;
    this.find("chart-title").textContent = `How many of ${block.size.toLocaleString("en")} are on — block ${number} of ${titles[this.y]}`;
    drawCounts(this.find("chart"), this.counts(this.y, number), this.logFactorial);
    const chips = block.variables.slice(0, 400).map((j) => make("span", { text: names[j] }));
    if (block.size > 400) chips.push(make("span", { text: `and ${block.size - 400} more` }));
    this.find("members").replaceChildren(...chips);
  }
}

/* Mean of a block's variables, and the correlation of any two of them. */
function moments(q) {
  const m = q.length - 1;
  let first = 0, second = 0;
  q.forEach((p, l) => { first += p * l; second += p * l * (l - 1); });
  const mean = first / m, variance = mean * (1 - mean);
  const correlation = m > 1 && variance > 1e-12 ? (second / (m * (m - 1)) - mean * mean) / variance : 0;
  return { mean, correlation };
}

/* Which questions the page leaves out, and where to ask them instead. */
function notePanel(data) {
  return `${data.leftOut}, so this page leaves out its live panel: setting what is known, the probabilities that follow, the most probable ${data.what} and completion, and what to ask next. What each ${data.what} is like is below. Ask the rest on the command line with "exchangeable query MODEL --given 'a=1,b=0'", or in Python with model.marginals({"a": 1}), most_probable and information_gain.`;
}

function overview(data) {
  data.titles = data.what === "class" ? data.classes.map((label) => `class ${label}`) : data.classes;
  for (const key of ["title", "kind", "about"]) document.getElementById(key).textContent = data[key];
  showProfiles(data);
  showTrees(data);
}

function leaveOut(...ids) { for (const id of ids) document.getElementById(id).hidden = true; }

{
  const data = JSON.parse(document.getElementById("data").textContent);
  overview(data);
  if (data.leftOut === undefined) window.panel = new Panel(new Mixture(data), data);
  else {
    leaveOut("panel", "how-to", "in-sight");
    const notice = document.getElementById("no-panel");
    notice.hidden = false;
    notice.textContent = notePanel(data);
  }
  if (data.labels === undefined) leaveOut("blocks", "blocks-link");
  else window.blocks = new Blocks(data);
}
