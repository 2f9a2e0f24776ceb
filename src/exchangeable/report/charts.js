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

/* A number with so many digits after the point, never a zero with a sign. */
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
