"use strict";
/* The model's arithmetic, the same as the library's: counts in blocks, look-ups, sums over unknown
   variables. Everything is in logarithms. Evidence is an array of -1 (unknown), 0 and 1. */

function unpack(text, Type) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Type(bytes.buffer);
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

class Model {
  constructor(data) {
    this.names = data.names;
    this.classes = data.classes;
    this.titles = data.titles;
    this.logPrior = unpack(data.logPrior, Float64Array);
    this.logFactorial = logFactorials(this.names.length);
    this.computes = data.tables !== undefined;
    const values = unpack(this.computes ? data.tables : data.logq, Float64Array);
    this.logq = data.logq === undefined ? null : unpack(data.logq, Float64Array);
    const labels = unpack(data.labels, Uint32Array);
    const n = this.names.length;
    let start = 0;
    this.parts = this.classes.map((_, y) => {
      const part = { labels: labels.subarray(y * n, (y + 1) * n), sizes: [], starts: [], values };
      for (const b of part.labels) part.sizes[b] = (part.sizes[b] || 0) + 1;
      for (const size of part.sizes) { part.starts.push(start); start += size + 1; }
      return part;
    });
  }

  /* Probabilities of each number of ones in a block. */
  counts(y, b) {
    const part = this.parts[y], m = part.sizes[b], q = new Float64Array(m + 1);
    const f = this.logFactorial;
    for (let l = 0; l <= m; l++) {
      const index = part.starts[b] + l;
      q[l] = Math.exp(this.logq ? this.logq[index] : part.values[index] + f[m] - f[l] - f[m - l]);
    }
    return q;
  }

  /* Log of the sum over the states of a block's unknown variables, and how many of these are on on
     average. `first` is the index of the look-up with none of them on. */
  sumOut(values, first, holes) {
    if (holes === 0) return [values[first], 0];
    const f = this.logFactorial;
    let highest = -Infinity;
    for (let s = 0; s <= holes; s++) {
      highest = Math.max(highest, values[first + s] - f[s] - f[holes - s]);
    }
    if (highest === -Infinity) return [-Infinity, 0];
    let total = 0, ones = 0;
    for (let s = 0; s <= holes; s++) {
      const share = Math.exp(values[first + s] - f[s] - f[holes - s] - highest);
      total += share;
      ones += s * share;
    }
    return [highest + Math.log(total) + f[holes], ones / total];
  }

  /* The number of known ones and of unknown variables in each block of a class. */
  tally(part, evidence) {
    const ones = new Int32Array(part.sizes.length), holes = new Int32Array(part.sizes.length);
    for (let j = 0; j < evidence.length; j++) {
      if (evidence[j] === 1) ones[part.labels[j]]++;
      else if (evidence[j] < 0) holes[part.labels[j]]++;
    }
    return [ones, holes];
  }

  /* For one class: log P(e, y), probabilities of the unknown variables, most probable completion. */
  ofClass(y, evidence) {
    const part = this.parts[y], [ones, holes] = this.tally(part, evidence), { labels } = part;
    const chance = new Float64Array(ones.length), wanted = new Int32Array(ones.length);
    let score = this.logPrior[y], completed = this.logPrior[y];
    for (let b = 0; b < ones.length; b++) {
      const first = part.starts[b] + ones[b];
      const [sum, expected] = this.sumOut(part.values, first, holes[b]);
      score += sum;
      if (holes[b]) chance[b] = expected / holes[b];
      for (let s = 1; s <= holes[b]; s++) {
        if (part.values[first + s] > part.values[first + wanted[b]]) wanted[b] = s;
      }
      completed += part.values[first + wanted[b]];
    }
    const fill = () => evidence.map((value, j) => (value >= 0 ? value : wanted[labels[j]]-- > 0 ? 1 : 0));
    return { score, completed, chance: (j) => chance[labels[j]], fill };
  }

  /* All answers, of class `given` alone where that is known (-1: it is not). */
  answer(evidence, given = -1) {
    const k = this.classes.length, n = this.names.length;
    const nothing = { score: -Infinity, completed: -Infinity };
    const found = this.classes.map((_, y) => (given < 0 || y === given ? this.ofClass(y, evidence) : nothing));
    const highest = found.reduce((most, { score }) => Math.max(most, score), -Infinity);
    if (highest === -Infinity) return { possible: false, logEvidence: -Infinity };
    const posterior = Float64Array.from(found, ({ score }) => Math.exp(score - highest));
    const total = posterior.reduce((sum, value) => sum + value, 0);
    const marginals = new Float64Array(n), within = new Float64Array(n);
    for (let y = 0; y < k; y++) {
      posterior[y] /= total;
      if (posterior[y] === 0) continue;
      const { chance } = found[y];
      for (let j = 0; j < n; j++) {
        const p = chance(j);
        marginals[j] += posterior[y] * p;
        if (posterior[y] > 1e-12) within[j] += posterior[y] * coinEntropy(p);
      }
    }
    /* How much each unknown variable would tell about the class, in nats. */
    const gains = within.map((value, j) => (evidence[j] >= 0 ? 0 : Math.max(coinEntropy(marginals[j]) - value, 0)));
    for (let j = 0; j < n; j++) {
      marginals[j] = evidence[j] >= 0 ? evidence[j] : Math.min(marginals[j], 1);
    }
    let chosen = Math.max(given, 0);
    for (let y = 1; y < k; y++) if (found[y].completed > found[chosen].completed) chosen = y;
    return {
      possible: true, posterior, marginals, gains, logEvidence: highest + Math.log(total),
      completion: found[chosen].fill(), completionClass: chosen, completionLogProb: found[chosen].completed,
    };
  }
}

function coinEntropy(p) {
  return p > 0 && p < 1 ? -p * Math.log(p) - (1 - p) * Math.log1p(-p) : 0;
}

function logAdd(a, b) {
  const high = Math.max(a, b);
  return high === -Infinity ? high : high + Math.log1p(Math.exp(Math.min(a, b) - high));
}

/* Blocks whose variables have weights: given how many are on, heavier ones are on more often. Sums
   over unknown variables are elementary symmetric polynomials, built up variable by variable. */
class WeightedModel extends Model {
  constructor(data) {
    super(data);
    const weights = unpack(data.weights, Float64Array), n = this.names.length;
    this.parts.forEach((part, y) => {
      part.weights = weights.subarray(y * n, (y + 1) * n);
      part.members = part.sizes.map(() => []);
      part.labels.forEach((b, j) => part.members[b].push(j));
    });
  }

  ofClass(y, evidence) {
    const part = this.parts[y], chances = new Float64Array(evidence.length);
    const filled = evidence.slice();
    let score = this.logPrior[y], completed = this.logPrior[y];
    part.members.forEach((members, b) => {
      const on = members.filter((j) => evidence[j] === 1), holes = members.filter((j) => evidence[j] < 0);
      const known = on.reduce((sum, j) => sum + part.weights[j], 0);
      const table = part.values.subarray(part.starts[b] + on.length, part.starts[b] + on.length + holes.length + 1);
      score += known + this.sumOver(holes, part.weights, table, chances);
      completed += known + this.fillUrn(holes, part.weights, table, filled);
    });
    return { score, completed, chance: (j) => chances[j], fill: () => filled };
  }

  /* Log of the sum over the states of the unknown variables; writes the probability of each. */
  sumOver(holes, weights, table, chances) {
    const h = holes.length, after = new Array(h + 1);
    after[h] = Float64Array.from(table);
    for (let i = h - 1; i >= 0; i--) {
      after[i] = new Float64Array(i + 1);
      for (let s = 0; s <= i; s++) after[i][s] = logAdd(after[i + 1][s], weights[holes[i]] + after[i + 1][s + 1]);
    }
    const total = after[0][0];
    if (total === -Infinity) return total;
    let before = Float64Array.of(0);
    for (let i = 0; i < h; i++) {
      const next = new Float64Array(i + 2).fill(-Infinity), weight = weights[holes[i]];
      let chance = 0;
      for (let s = 0; s <= i; s++) {
        const taken = before[s] + weight;
        chance += Math.exp(taken + after[i + 1][s + 1] - total);
        next[s] = logAdd(next[s], before[s]);
        next[s + 1] = logAdd(next[s + 1], taken);
      }
      chances[holes[i]] = chance;
      before = next;
    }
    return total;
  }

  /* Turns on the heaviest unknown variables, as many as is most probable; returns the log. */
  fillUrn(holes, weights, table, filled) {
    const ranked = holes.slice().sort((a, b) => weights[b] - weights[a] || a - b);
    let best = 0, highest = table[0], gathered = 0;
    ranked.forEach((j, i) => {
      gathered += weights[j];
      if (gathered + table[i + 1] > highest) { best = i + 1; highest = gathered + table[i + 1]; }
    });
    ranked.forEach((j, i) => { filled[j] = i < best ? 1 : 0; });
    return highest;
  }
}
