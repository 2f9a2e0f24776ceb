/* Trees of blocks with hidden states, of which only the number of ones matters. */

class HiddenTree extends StateTree {
  constructor(data, n, logFactorial) {
    const [part] = layOut(data.labels, n);
    super(data, data.table.length / (n + part.sizes.length));
    Object.assign(this, { part, table: data.table, logFactorial });
  }

  /* For each block, the lines of all counts that it may have: log P of one row with each, by state. */
  lines([ones, holes]) {
    return this.part.sizes.map((_, b) => Array.from({ length: holes[b] + 1 }, (_, s) => {
      const at = (this.part.starts[b] + ones[b] + s) * this.h;
      return { log: this.table.subarray(at, at + this.h) };
    }));
  }

  evaluate(row, only) {
    const counted = tally(this.part, row), [, holes] = counted, f = this.logFactorial, { labels } = this.part;
    const shown = this.lines(counted).map((ways, b) => {
      const byState = Array.from({ length: this.h }, (_, z) => ways.map(({ log }, s) => log[z] + f[holes[b]] - f[s] - f[holes[b] - s]));
      return { byState, log: byState.map(logSum) };
    });
    const pass = this.upward(shown.map(({ log }) => log)), asked = this.asked(only);
    const posteriors = this.posteriors(pass, asked.map((y) => this.states[y]));
    const means = shown.map(({ byState, log }) => byState.map((terms, z) => SUMS.shares(terms, log[z]).reduce((sum, share, s) => sum + share * s, 0)));
    const results = Array.from(this.states, () => null);
    asked.forEach((y, place) => {
      const chance = means.map((line, b) => (holes[b] ? line.reduce((sum, mean, z) => sum + mean * posteriors[b][place][z], 0) / holes[b] : 0));
      results[y] = { score: pass.scores[this.states[y]], predictive: (j) => chance[labels[j]] };
    });
    return results;
  }

  mostProbable(row, logPrior, only) {
    const found = this.search(this.lines(tally(this.part, row)), logPrior, only);
    return { logProb: found.logProb, class: found.class, bound: found.bound, row: fillBlocks(this.part.labels, row, found.chosen) };
  }
}

EVALUATORS["hidden trees"] = class extends Evaluator {
  constructor(data, n) {
    super();
    const logFactorial = logFactorials(n);
    this.parts = data.trees.map((tree) => new HiddenTree(tree, n, logFactorial));
    this.classes = this.parts.reduce((sum, part) => sum + part.classes, 0);
  }

  evaluate(row, only) { return evaluateParts(this.parts, row, only); }

  mostProbable(row, logPrior, only) { return bestOfParts(this.parts, row, logPrior, only); }
};
