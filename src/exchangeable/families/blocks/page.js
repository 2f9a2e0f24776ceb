/* Blocks: a look-up for every number of ones. */

EVALUATORS.blocks = class extends Evaluator {
  constructor(data, n) {
    super();
    this.parts = layOut(data.labels, n);
    this.classes = this.parts.length;
    this.tables = data.tables;
    this.logFactorial = logFactorials(n);
  }

  /* Log of the sum over the states of a block's unknown variables, and how many of these are on on
     average. `first` is the index of the look-up with none of them on. */
  sumOut(first, holes) {
    const { tables, logFactorial: f } = this;
    if (holes === 0) return [tables[first], 0];
    let highest = -Infinity;
    for (let s = 0; s <= holes; s++) highest = Math.max(highest, tables[first + s] - f[s] - f[holes - s]);
    if (highest === -Infinity) return [-Infinity, 0];
    let total = 0, ones = 0;
    for (let s = 0; s <= holes; s++) {
      const share = Math.exp(tables[first + s] - f[s] - f[holes - s] - highest);
      total += share;
      ones += s * share;
    }
    return [highest + Math.log(total) + f[holes], ones / total];
  }

  ofClass(y, row) {
    const part = this.parts[y], [ones, holes] = tally(part, row), chance = new Float64Array(ones.length);
    let score = 0;
    for (let b = 0; b < ones.length; b++) {
      const [sum, expected] = this.sumOut(part.starts[b] + ones[b], holes[b]);
      score += sum;
      if (holes[b]) chance[b] = expected / holes[b];
    }
    return { score, predictive: (j) => chance[part.labels[j]], complete: () => this.complete(part, row, ones, holes) };
  }

  complete(part, row, ones, holes) {
    const wanted = new Int32Array(ones.length);
    let logProb = 0;
    for (let b = 0; b < ones.length; b++) {
      const first = part.starts[b] + ones[b];
      for (let s = 1; s <= holes[b]; s++) if (this.tables[first + s] > this.tables[first + wanted[b]]) wanted[b] = s;
      logProb += this.tables[first + wanted[b]];
    }
    return { logProb, row: fillBlocks(part.labels, row, wanted) };
  }
};
