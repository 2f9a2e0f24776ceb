/* Models made of other models: several families as one, and classes that are mixtures themselves. */

EVALUATORS.joined = class extends Evaluator {
  constructor(data, n) {
    super();
    this.parts = data.parts.map((part) => evaluatorOf(part, n));
    this.classes = this.parts.reduce((sum, part) => sum + part.classes, 0);
  }

  evaluate(row, only) { return evaluateParts(this.parts, row, only); }

  mostProbable(row, logPrior, only) { return bestOfParts(this.parts, row, logPrior, only); }
};

EVALUATORS.grouped = class extends Evaluator {
  constructor({ inner, group, shares }, n) {
    super();
    this.inner = evaluatorOf(inner, n);
    this.members = [];
    group.forEach((y, component) => { (this.members[y] = this.members[y] || []).push(component); });
    this.classes = this.members.length;
    this.shares = shares;
  }

  ofClass(y, row) {
    const members = this.members[y], found = members.map((each) => this.inner.evaluate(row, each)[each]);
    const joint = found.map(({ score }, i) => score + this.shares[members[i]]), score = logSum(joint);
    const shares = SUMS.shares(joint, score);
    const predictive = (j) => averaged(shares, found.map((each) => each.predictive(j)));
    return { score, predictive, complete: () => this.complete(y, row) };
  }

  /* The best, in the class, of the most probable completions in its components. */
  complete(y, row) {
    let best = { logProb: -Infinity };
    const nothing = new Float64Array(this.inner.classes);
    for (const each of this.members[y]) {
      const made = this.inner.mostProbable(row, nothing, each);
      if (made.logProb === -Infinity) continue;
      const logProb = this.ofClass(y, made.row).score;
      if (logProb > best.logProb) best = { logProb, row: made.row };
    }
    return best;
  }
};
