/* What the classes are like: a card for each, and a table for columns that are not binary. */

function card(data, { class: y, size, lines }) {
  const head = make("h3", {}, make("span", { class: "name", text: data.titles[y], title: data.titles[y] }),
    make("span", { class: "number", text: `${fixed(100 * size, 1)} %` }));
  const rows = lines.map(({ text, share, own, whole }) => make("li", {},
    make("span", { class: "name", text, title: text }),
    share ? meter(own, whole) : make("span", { class: "quiet", text: `overall ${brief(whole)}` }),
    make("span", { class: "number", text: share ? shown(own) : brief(own) })));
  const like = rows.length ? make("ul", { class: "telling" }, ...rows) : make("p", { class: "quiet", text: "Nothing sets it apart from the average." });
  return make("article", { class: "card" }, head, meter(size), like);
}

function showProfiles(data) {
  const plural = data.what === "class" ? "Classes" : "Components", hidden = data.classes.length - data.cards.length;
  for (const id of ["profiles-title", "profiles-link"]) document.getElementById(id).textContent = plural;
  document.getElementById("profiles-text").textContent = `How large each ${data.what} is, and the variables in which it differs most from the average, which is the mark on a bar.${hidden > 0 ? ` The ${data.cards.length} largest of ${data.classes.length.toLocaleString("en")} are shown.` : ""}`;
  document.getElementById("cards").append(...data.cards.map((each) => card(data, each)));
  if (data.table) showTable(data);
}

/* Probabilities of levels, means and standard deviations: overall, and in the largest classes. */
function showTable({ table, titles }) {
  const heads = ["column", "answer", "overall", ...table.classes.map((y) => titles[y])];
  const body = table.rows.map((row) => make("tr", {}, ...row.map((text) => make("td", { text }))));
  document.getElementById("marginals").append(
    make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col", text })))), make("tbody", {}, ...body));
  document.getElementById("marginals-card").hidden = false;
}
