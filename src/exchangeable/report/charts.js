/* Elements and charts. Names come from data, so they are only ever set as text, never as markup. */

function make(tag, options, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(options || {})) {
    if (key === "text") node.textContent = value;
    else if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function draw(tag, options, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(options)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function meter(value, mark) {
  const bar = make("div", { class: "meter", "aria-hidden": "true" });
  const fill = make("i");
  fill.style.width = `${100 * value}%`;
  bar.append(fill);
  if (mark !== undefined) {
    const tick = make("b");
    tick.style.left = `calc(${100 * mark}% - 1px)`;
    bar.append(tick);
  }
  return bar;
}

/* A number with this many digits after the point, never a zero with a sign. */
function fixed(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text;
}

function shown(p) {
  if (p > 0 && p < 0.0005) return "<0.001";
  if (p < 1 && p > 0.9995) return ">0.999";
  return fixed(p, 3);
}

/* The probabilities of counts as bars, and the binomial with the same mean as a line. */
function drawCounts(box, q, logFactorial) {
  const m = q.length - 1, mean = q.reduce((sum, p, l) => sum + p * l, 0) / m;
  const f = logFactorial;
  const binomial = q.map((_, l) => {
    if (mean <= 0) return l === 0 ? 1 : 0;
    if (mean >= 1) return l === m ? 1 : 0;
    return Math.exp(f[m] - f[l] - f[m - l] + l * Math.log(mean) + (m - l) * Math.log1p(-mean));
  });
  let low = 0, high = m, cut = 1e-4;
  while (low < high && q[low] < cut && binomial[low] < cut) low++;
  while (high > low && q[high] < cut && binomial[high] < cut) high--;
  const step = Math.max(1, Math.ceil((high - low + 1) / 60)), bars = [];
  for (let l = low; l <= high; l += step) {
    const bar = { from: l, to: Math.min(l + step - 1, high), model: 0, line: 0 };
    for (let l = bar.from; l <= bar.to; l++) { bar.model += q[l]; bar.line += binomial[l]; }
    bars.push(bar);
  }
  const width = 420, height = 190, left = 34, bottom = 24, top = 8;
  const highest = Math.max(...bars.map((bar) => Math.max(bar.model, bar.line)));
  const x = (i) => left + ((width - left - 4) * i) / bars.length;
  const y = (p) => top + (height - top - bottom) * (1 - p / highest);
  const wide = (width - left - 4) / bars.length;
  const listed = bars.map((bar) => `${bar.from}: ${bar.model.toFixed(3)}`).slice(0, 12).join(", ");
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Probabilities of the number of ones. ${listed}` });
  for (const share of [0, 0.5, 1]) {
    const p = share * highest;
    svg.append(draw("line", { class: "axis", x1: left, x2: width, y1: y(p), y2: y(p) }));
    svg.append(draw("text", { x: left - 5, y: y(p) + 4, "text-anchor": "end" }, p.toPrecision(2)));
  }
  bars.forEach((bar, i) => {
    svg.append(draw("rect", { x: x(i) + Math.min(1.5, wide / 8), width: Math.max(wide - Math.min(3, wide / 4), 0.5), y: y(bar.model), height: y(0) - y(bar.model), rx: Math.min(2, wide / 4) }));
  });
  const points = bars.map((bar, i) => `${x(i) + wide / 2},${y(bar.line)}`).join(" ");
  svg.append(draw("polyline", { class: "binomial", points }));
  const every = Math.max(1, Math.ceil(bars.length / 10));
  bars.forEach((bar, i) => {
    if (i % every === 0) svg.append(draw("text", { x: x(i) + wide / 2, y: height - 7, "text-anchor": "middle" }, bar.from));
  });
  box.replaceChildren(svg);
}

/* The values of a column that a picture shows: levels, counts up to where hardly any lie, or a range. */
function pictured(column, told, before) {
  if (column.kind === "continuous") return column.ends;
  if (column.levels.length) return [0, column.levels.length - 1];
  const end = ({ shares }) => { let sum = 0; return shares.findIndex((p) => (sum += p) > 0.995); };
  return [0, Math.max(1, ...[told, before].filter((each) => each !== null).map(end))];
}

/* How a column is distributed: bars, or a curve, with what was so before anything was known as marks. */
function drawDistribution(column, told, before, value, { width, height, labels }) {
  const svg = draw("svg", { class: "distribution", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const [low, high] = pictured(column, told, before), bottom = labels ? 22 : 1, floor = height - bottom;
  const now = told || before;
  if (column.kind === "continuous") {
    const at = Array.from({ length: labels ? 121 : 41 }, (_, i, n = labels ? 120 : 40) => low + ((high - low) * i) / n);
    const x = (each) => (width * (each - low)) / (high - low || 1);
    const curves = [now, before].map((each) => at.map((point) => column.density(each, point)));
    const most = Math.max(...curves.flat()) || 1, y = (p) => floor - (floor - 2) * (p / most);
    const points = (line) => at.map((point, i) => `${x(point).toFixed(1)},${y(line[i]).toFixed(1)}`).join(" ");
    if (told) svg.append(draw("polygon", { class: "dense", points: `0,${floor} ${points(curves[0])} ${width},${floor}` }));
    svg.append(draw("polyline", { class: "before", points: points(curves[1]) }));
    if (!unknown(value)) svg.append(draw("line", { class: "at", x1: x(column.invert(value)), x2: x(column.invert(value)), y1: 0, y2: floor }));
    if (labels) [low, (low + high) / 2, high].forEach((each, i) => svg.append(draw("text", { x: x(each), y: height - 6, "text-anchor": ["start", "middle", "end"][i] }, brief(each))));
    return svg;
  }
  const n = high - low + 1, wide = width / n, most = Math.max(...now.shares.slice(0, n), ...before.shares.slice(0, n));
  const every = Math.ceil(n / (column.levels.length ? 6 : 12)), letters = Math.max(3, Math.floor((every * wide) / 6.5));
  for (let v = 0; v < n; v++) {
    const share = told ? told.shares[v] || 0 : v === value ? most : 0, tall = (floor - 2) * (share / most), usual = floor - (floor - 2) * ((before.shares[v] || 0) / most);
    svg.append(draw("rect", { x: v * wide + Math.min(1, wide / 8), width: Math.max(wide - Math.min(2, wide / 4), 0.5), y: floor - tall, height: tall }));
    svg.append(draw("line", { class: "before", x1: v * wide + wide * 0.15, x2: (v + 1) * wide - wide * 0.15, y1: usual, y2: usual }));
    const text = column.levels.length ? column.levels[v] : String(v);
    if (labels && v % every === 0) svg.append(draw("text", { x: v * wide + wide / 2, y: height - 6, "text-anchor": "middle" }, text.length > letters ? `${text.slice(0, letters - 1)}…` : text));
  }
  return svg;
}
