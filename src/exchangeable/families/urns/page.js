/* Blocks whose variables have weights: given how many are on, heavier ones are on more often. Sums
   over unknown variables are elementary symmetric polynomials, built up variable by variable. */

EVALUATORS.urns = class extends Evaluator {
  constructor(data, n) {
    super();
    this.tables = data.tables;
    this.parts = layOut(data.labels, n);
    this.classes = this.parts.length;
    this.parts.forEach((part, y) => {
      part.weights = data.weights.subarray(y * n, (y + 1) * n);
      part.members = part.sizes.map(() => []);
      part.labels.forEach((b, j) => part.members[b].push(j));
    });
  }

  ofClass(y, row) {
    const part = this.parts[y], chances = new Float64Array(row.length);
    let score = 0;
    const urns = part.members.map((members, b) => {
      const on = members.filter((j) => row[j] === 1), holes = members.filter((j) => unknown(row[j]));
      const first = part.starts[b] + on.length, table = this.tables.subarray(first, first + holes.length + 1);
      const known = on.reduce((sum, j) => sum + part.weights[j], 0);
      score += known + this.sumOver(holes, part.weights, table, chances);
      return { holes, table, known };
    });
    return { score, predictive: (j) => chances[j], complete: () => this.complete(urns, part.weights, row) };
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

  /* Turns on the heaviest unknown variables of each urn, as many as is most probable. */
  complete(urns, weights, row) {
    const filled = row.slice();
    let logProb = 0;
    for (const { holes, table, known } of urns) {
      const ranked = holes.slice().sort((a, b) => weights[b] - weights[a] || a - b);
      let best = 0, highest = table[0], gathered = 0;
      ranked.forEach((j, i) => {
        gathered += weights[j];
        if (gathered + table[i + 1] > highest) { best = i + 1; highest = gathered + table[i + 1]; }
      });
      ranked.forEach((j, i) => { filled[j] = i < best ? 1 : 0; });
      logProb += known + highest;
    }
    return { logProb, row: filled };
  }
};
