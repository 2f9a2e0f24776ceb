/* All answers of a mixture: what its classes say, weighed by how probable each is. */

class Mixture {
  constructor(data) {
    Object.assign(this, { names: data.names, titles: data.titles, classes: data.classes });
    this.logPrior = unpack(data.logPrior);
    this.columns = data.names.map((_, j) => new Column(data.columns ? data.columns[j] : { kind: "binary", levels: ["0", "1"] }));
    this.binary = data.columns === undefined;
    this.nodes = data.nodes === undefined ? null : unpack(data.nodes);
    this.evaluator = evaluatorOf({ evaluator: data.model.evaluator, data: unpack(data.model.data) }, data.names.length);
  }

  /* What `row` says: of class `given` alone where that is known (-1: it is not). */
  answer(row, given = -1) {
    const found = this.evaluator.evaluate(row, given);
    const joint = Float64Array.from(found, (each, y) => (each === null ? -Infinity : each.score + this.logPrior[y]));
    const total = logSum(joint);
    if (total === -Infinity) return { possible: false, logEvidence: total };
    const posterior = joint.map((value) => Math.exp(value - total));
    const likely = Array.from(posterior.keys()).filter((y) => posterior[y] > 0);
    const told = this.columns.map((column, j) => (unknown(row[j]) ? this.of(column, j, found, posterior, likely) : null));
    return {
      possible: true, posterior, told, logEvidence: total + this.logSlopes(row),
      marginals: this.binary ? Float64Array.from(told, (each, j) => (each === null ? row[j] : each.on)) : null,
      gains: Float64Array.from(told, (each) => (each === null ? 0 : each.gain)), ...this.completion(row, given, found),
    };
  }

  /* How one column is distributed, and how much it would tell about the class, in nats. */
  of(column, j, found, posterior, likely) {
    if (column.kind === "binary") {
      let on = 0, within = 0;
      for (const y of likely) {
        const each = found[y].predictive(j), p = typeof each === "number" ? each : each[1];
        on += posterior[y] * p;
        if (posterior[y] > 1e-12) within += posterior[y] * coinEntropy(p);
      }
      on = Math.min(on, 1);
      return { on, shares: [1 - on, on], gain: Math.max(coinEntropy(on) - within, 0) };
    }
    const each = likely.map((y) => found[y].predictive(j)), weights = likely.map((y) => posterior[y]);
    return column.kind === "continuous" ? this.ofNormals(column, weights, each) : ofShares(weights, each);
  }

  ofNormals(column, weights, each) {
    const parts = each.map(normalsOf), whole = averaged(weights, parts), logs = weights.map(Math.log);
    const { nodes, nodeWeights, gainNodes, gainWeights } = this.nodes;
    const dense = (own, at) => logSum(own.means.map((m, i) => (
      Math.log(own.weights[i]) - 0.5 * ((at - m) ** 2 / own.variances[i] + Math.log(own.variances[i])))));
    let mean = 0, square = 0, gain = 0;
    whole.means.forEach((centre, y) => nodes.forEach((node, i) => {
      const x = column.invert(centre + Math.sqrt(whole.variances[y]) * node), share = whole.weights[y] * nodeWeights[i];
      mean += share * x;
      square += share * x * x;
    }));
    parts.forEach((own, y) => own.means.forEach((centre, c) => gainNodes.forEach((node, i) => {
      const at = centre + Math.sqrt(own.variances[c]) * node, found = parts.map((part) => dense(part, at));
      const share = weights[y] * own.weights[c] * gainWeights[i];
      if (share > 0) gain += share * (found[y] - logSum(found.map((value, z) => value + logs[z])));
    })));
    return { ...whole, mean, deviation: Math.sqrt(Math.max(square - mean * mean, 0)), gain: Math.max(gain, 0) };
  }

  /* The log of how much measurements are stretched: densities are per unit of the user's. */
  logSlopes(row) {
    return this.columns.reduce((sum, column, j) => (unknown(row[j]) ? sum : sum + column.logSlope(row[j])), 0);
  }

  completion(row, given, found) {
    const best = this.evaluator.mostProbable(row, this.logPrior, given, found);
    const slopes = this.binary ? 0 : this.logSlopes(best.row);
    return {
      completion: best.row, completionClass: best.class, completionLogProb: best.logProb + slopes,
      completionGap: best.bound - best.logProb,
    };
  }
}

/* Levels or counts: probabilities of each, and how much they would tell. */
function ofShares(weights, each) {
  const shares = new Array(Math.max(...each.map((line) => line.length))).fill(0);
  let within = 0;
  each.forEach((line, y) => line.forEach((p, v) => {
    shares[v] += weights[y] * p;
    if (p > 0) within -= weights[y] * p * Math.log(p);
  }));
  const entropy = shares.reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
  const total = shares.reduce((sum, p) => sum + p, 0);
  const normalised = shares.map((p) => p / total);
  return { shares: normalised, mean: normalised.reduce((sum, p, v) => sum + p * v, 0), gain: Math.max(entropy - within, 0) };
}
