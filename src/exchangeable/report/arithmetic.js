"use strict";
/* The model's arithmetic, the same as the library's: counts in blocks, look-ups, sums over hidden
   ones. Everything is in logarithms. Evidence is an array of -1 (not known), 0 and 1. */

function unpack(text, Type) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Type(bytes.buffer);
}

/* ln l! for l = 0..n; compensated, so that the last of thousands of terms is still exact. */
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
    this.titles = data.what === "class" ? data.classes.map((label) => `class ${label}`) : data.classes;
    this.logPrior = unpack(data.logPrior, Float64Array);
    this.logFactorial = logFactorials(this.names.length);
    this.computes = data.tables !== undefined;
    const values = unpack(this.computes ? data.tables : data.logq, Float64Array);
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
      const ways = this.computes ? f[m] - f[l] - f[m - l] : 0;
      q[l] = Math.exp(part.values[part.starts[b] + l] + ways);
    }
    return q;
  }

  /* Log of the sum over the hidden ones of a block, and their expected number. */
  hidden(values, place, holes) {
    if (holes === 0) return [values[place], 0];
    const f = this.logFactorial;
    let highest = -Infinity;
    for (let s = 0; s <= holes; s++) {
      highest = Math.max(highest, values[place + s] - f[s] - f[holes - s]);
    }
    if (highest === -Infinity) return [-Infinity, 0];
    let total = 0, ones = 0;
    for (let s = 0; s <= holes; s++) {
      const share = Math.exp(values[place + s] - f[s] - f[holes - s] - highest);
      total += share;
      ones += s * share;
    }
    return [highest + Math.log(total) + f[holes], ones / total];
  }

  /* How many known ones and how many holes each block of a class has. */
  tally(part, evidence) {
    const ones = new Int32Array(part.sizes.length), holes = new Int32Array(part.sizes.length);
    for (let j = 0; j < evidence.length; j++) {
      if (evidence[j] === 1) ones[part.labels[j]]++;
      else if (evidence[j] < 0) holes[part.labels[j]]++;
    }
    return [ones, holes];
  }

  answer(evidence) {
    const k = this.classes.length, n = this.names.length;
    const joint = new Float64Array(k), chances = [];
    let best = -Infinity, chosen = 0, wanted = null;
    for (let y = 0; y < k; y++) {
      const part = this.parts[y], [ones, holes] = this.tally(part, evidence);
      const chance = new Float64Array(ones.length), first = new Int32Array(ones.length);
      let score = this.logPrior[y], completed = this.logPrior[y];
      for (let b = 0; b < ones.length; b++) {
        const place = part.starts[b] + ones[b];
        const [sum, expected] = this.hidden(part.values, place, holes[b]);
        score += sum;
        if (holes[b]) chance[b] = expected / holes[b];
        for (let s = 1; s <= holes[b]; s++) {
          if (part.values[place + s] > part.values[place + first[b]]) first[b] = s;
        }
        completed += part.values[place + first[b]];
      }
      joint[y] = score;
      chances.push(chance);
      if (completed > best) { best = completed; chosen = y; wanted = first; }
    }
    const highest = Math.max(...joint);
    if (highest === -Infinity) return { possible: false, logEvidence: -Infinity };
    const posterior = joint.map((value) => Math.exp(value - highest));
    const total = posterior.reduce((sum, value) => sum + value, 0);
    for (let y = 0; y < k; y++) posterior[y] /= total;
    const marginals = new Float64Array(n);
    for (let y = 0; y < k; y++) {
      if (posterior[y] === 0) continue;
      const labels = this.parts[y].labels, chance = chances[y];
      for (let j = 0; j < n; j++) marginals[j] += posterior[y] * chance[labels[j]];
    }
    const completion = new Uint8Array(n), labels = this.parts[chosen].labels;
    for (let j = 0; j < n; j++) {
      if (evidence[j] >= 0) { marginals[j] = completion[j] = evidence[j]; continue; }
      marginals[j] = Math.min(marginals[j], 1);
      if (wanted[labels[j]]-- > 0) completion[j] = 1;
    }
    return {
      possible: true, posterior, marginals, logEvidence: highest + Math.log(total),
      completion, completionClass: chosen, completionLogProb: best,
    };
  }
}
