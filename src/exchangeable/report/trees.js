/* The tree of a class: a node below its parent and to the right of it, joined by a line. */

/* Nodes from the roots on, each followed by what hangs below it: [node, depth, line of its parent]. */
function treeLines(n, edges) {
  const children = Array.from({ length: n }, () => []), isRoot = new Array(n).fill(true);
  for (const [child, parent] of edges) { children[parent].push(child); isRoot[child] = false; }
  const lines = [], waiting = [];
  for (let j = n - 1; j >= 0; j--) if (isRoot[j]) waiting.push([j, 0, -1]);
  while (waiting.length) {
    const [node, depth, parent] = waiting.pop();
    for (const child of children[node].reverse()) waiting.push([child, depth + 1, lines.length]);
    lines.push([node, depth, parent]);
  }
  return lines;
}

function drawTree(box, { nodes, edges }, title) {
  const lines = treeLines(nodes.length, edges), high = 22, indent = 20;
  const x = (depth) => 10 + indent * depth, y = (line) => 12 + high * line;
  const width = Math.max(...lines.map(([node, depth]) => x(depth) + 16 + 8 * nodes[node].length));
  const height = high * lines.length + 4;
  const svg = draw("svg", { class: "tree", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `Tree of ${title}: ${edges.slice(0, 30).map(([child, parent]) => `${nodes[child]} below ${nodes[parent]}`).join("; ")}` });
  lines.forEach(([, depth, parent], line) => {
    if (parent >= 0) svg.append(draw("path", { class: "edge", d: `M${x(depth - 1)} ${y(parent)}V${y(line)}H${x(depth)}` }));
  });
  lines.forEach(([node, depth], line) => {
    svg.append(draw("circle", { cx: x(depth), cy: y(line), r: 4 }), draw("text", { x: x(depth) + 10, y: y(line) + 4 }, nodes[node]));
  });
  box.replaceChildren(svg);
}

function showTrees(data) {
  if (data.trees === undefined) return;
  for (const id of ["trees", "trees-link"]) document.getElementById(id).hidden = false;
  const note = document.getElementById("trees-note"), which = document.getElementById("which-tree");
  note.textContent = data.treesLeftOut ? "Trees with more than 80 nodes are not drawn; model.edges_ lists their edges." : "";
  document.getElementById("tree-card").hidden = data.trees.length === 0;
  if (!data.trees.length) return;
  data.trees.forEach((tree, i) => which.append(make("option", { value: i, text: data.titles[tree.class] })));
  const open = () => { const tree = data.trees[which.value]; drawTree(document.getElementById("tree"), tree, data.titles[tree.class]); };
  which.addEventListener("change", open);
  open();
}
