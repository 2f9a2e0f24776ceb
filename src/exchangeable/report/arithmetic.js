"use strict";
/* What every family's evaluator needs. Everything is in logarithms. A row is an array of numbers with
   NaN for what is not known: 0 and 1, numbers of levels, counts, measurements on their own scale. */

const TYPES = { f8: Float64Array, i4: Int32Array };

/* Turns packed arrays, wherever they are, into arrays of numbers. */
function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  if (value === null || typeof value !== "object") return value;
  if (value.packed !== undefined) {
    return new TYPES[value.packed](Uint8Array.from(atob(value.bytes), (c) => c.charCodeAt(0)).buffer);
  }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, unpack(inner)]));
}

/* ln l! for l = 0..n, by compensated summation, so that thousands of terms stay exact. */
function logFactorials(n) {
  const result = new Float64Array(n + 1);
  let sum = 0, lost = 0;
  for (let l = 1; l <= n; l++) {
    const term = Math.log(l) - lost;
    const next = sum + term;
    lost = next - sum - term;
    sum = next;
    result[l] = sum;
  }
  return result;
}

/* ln Γ(x) for x > 0: Stirling's series, after x has been raised above 12. */
function logGamma(x) {
  let shift = 0;
  while (x < 12) { shift -= Math.log(x); x += 1; }
  const y = 1 / (x * x);
  const series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - (y * 691) / 360360))))) / x;
  return shift + (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series;
}

function logAdd(a, b) {
  const high = Math.max(a, b);
  return high === -Infinity ? high : high + Math.log1p(Math.exp(Math.min(a, b) - high));
}

function logSum(values) {
  const highest = values.reduce((most, value) => Math.max(most, value), -Infinity);
  if (highest === -Infinity) return highest;
  return highest + Math.log(values.reduce((sum, value) => sum + Math.exp(value - highest), 0));
}

/* Where the highest value stands, the first of several. */
function highestAt(values) {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}

function coinEntropy(p) {
  return p > 0 && p < 1 ? -p * Math.log(p) - (1 - p) * Math.log1p(-p) : 0;
}

function unknown(value) { return value !== value; }

/* For each class the size of its blocks, and where their counts begin in a table of all classes. */
function layOut(labels, n) {
  let start = 0;
  return Array.from({ length: labels.length / n }, (_, y) => {
    const part = { labels: labels.subarray(y * n, (y + 1) * n), sizes: [], starts: [] };
    for (const b of part.labels) part.sizes[b] = (part.sizes[b] || 0) + 1;
    for (const size of part.sizes) { part.starts.push(start); start += size + 1; }
    return part;
  });
}

/* The number of known ones and of unknown variables in each block. */
function tally({ labels, sizes }, row) {
  const ones = new Int32Array(sizes.length), holes = new Int32Array(sizes.length);
  for (let j = 0; j < row.length; j++) {
    if (row[j] === 1) ones[labels[j]]++;
    else if (unknown(row[j])) holes[labels[j]]++;
  }
  return [ones, holes];
}

/* A row whose unknown variables are on until as many are as each block wants. */
function fillBlocks(labels, row, wanted) {
  const left = Array.from(wanted);
  return row.map((value, j) => (unknown(value) ? (left[labels[j]]-- > 0 ? 1 : 0) : value));
}

/* Nodes, parents before children; a root's parent is no node. */
function parentsFirst(parent) {
  const n = parent.length, children = Array.from({ length: n + 1 }, () => []), order = [];
  parent.forEach((p, v) => children[p < 0 || p >= n ? n : p].push(v));
  const waiting = children[n].slice().reverse();
  while (waiting.length) {
    const v = waiting.pop();
    order.push(v);
    for (const child of children[v]) waiting.push(child);
  }
  return order;
}

/* Sums and maxima behind one interface: `add` joins log-probabilities, `shares` says what part of a
   total each of its terms is. Of a maximum the first of the highest terms is all of it, so that the
   same pass back that finds probabilities also finds the most probable completion. */
const SUMS = {
  add: logSum,
  shares: (terms, total) => (total === -Infinity ? terms.map(() => 0) : terms.map((term) => Math.exp(term - total))),
};
const MAXIMA = {
  add: (terms) => terms.reduce((most, term) => Math.max(most, term), -Infinity),
  shares: (terms) => { const best = highestAt(terms); return terms.map((_, i) => (i === best ? 1 : 0)); },
};

/* What is known about a measurement as a mixture of normal distributions. */
function normalsOf(told) {
  return told.means === undefined ? { weights: [1], means: [told.mean], variances: [told.variance] } : told;
}

/* The average of what one variable is in several components, by their shares. */
function averaged(shares, each) {
  if (typeof each[0] === "number") {
    return Math.min(1, each.reduce((sum, p, i) => sum + (shares[i] > 0 ? shares[i] * p : 0), 0));
  }
  if (each[0].length === undefined) {
    const parts = each.map(normalsOf);
    return {
      weights: parts.flatMap(({ weights }, i) => Array.from(weights, (w) => w * shares[i])),
      means: parts.flatMap(({ means }) => Array.from(means)), variances: parts.flatMap(({ variances }) => Array.from(variances)),
    };
  }
  const line = new Array(Math.max(...each.map(({ length }) => length))).fill(0);
  each.forEach((own, i) => { if (shares[i] > 0) own.forEach((p, v) => { line[v] += shares[i] * p; }); });
  return line;
}

/* Evaluators by name. Each is made of what a model gives and the number of variables; `classes` is how
   many classes it has, and `ofClass(y, row)` returns log P(row | y) as `score`, `predictive(j)` of what
   is not known (a probability, those of levels or counts, mean and variance, or weights, means and
   variances of a mixture), and `complete()`. */
const EVALUATORS = {};

function evaluatorOf({ evaluator, data }, n) { return new EVALUATORS[evaluator](data, n); }

class Evaluator {
  /* What each class says; null for those that are not asked (`only` < 0: all are). */
  evaluate(row, only) {
    return Array.from({ length: this.classes }, (_, y) => (only < 0 || y === only ? this.ofClass(y, row) : null));
  }

  /* The completion and class that are jointly most probable; none exceeds `bound`. */
  mostProbable(row, logPrior, only, found = this.evaluate(row, only)) {
    let best = { logProb: -Infinity };
    found.forEach((each, y) => {
      if (each === null || each.score === -Infinity) return;
      const made = each.complete(), logProb = made.logProb + logPrior[y];
      if (logProb > best.logProb) best = { logProb, bound: logProb, row: made.row, class: y };
    });
    return best;
  }
}

/* Evaluators whose classes follow one another, as one. */
function evaluateParts(parts, row, only) {
  let begin = 0;
  return parts.flatMap((part) => {
    const mine = only < 0 ? -1 : only - begin, asked = mine < part.classes && (only < 0 || mine >= 0);
    begin += part.classes;
    return asked ? part.evaluate(row, mine) : new Array(part.classes).fill(null);
  });
}

function bestOfParts(parts, row, logPrior, only) {
  let begin = 0, best = { logProb: -Infinity }, bound = -Infinity;
  for (const part of parts) {
    const mine = only < 0 ? -1 : only - begin;
    if (only < 0 || (mine >= 0 && mine < part.classes)) {
      const made = part.mostProbable(row, logPrior.subarray(begin, begin + part.classes), mine);
      if (made.logProb > best.logProb) best = { ...made, class: made.class + begin };
      bound = Math.max(bound, made.logProb === -Infinity ? bound : made.bound);
    }
    begin += part.classes;
  }
  return { ...best, bound };
}
