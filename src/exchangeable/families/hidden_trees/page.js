/* Trees of blocks with hidden states; the states of a root are the classes. */

const HIDDEN_WORK = 2e7, HIDDEN_BRANCHES = 512, CLOSE_ENOUGH = 1e-9;

class HiddenTree {
  constructor({ labels, parent, table, edges, states }, n, logFactorial) {
    [this.part] = layOut(labels, n);
    Object.assign(this, { parent, table, edges, states, logFactorial, order: parentsFirst(parent) });
    this.h = table.length / (n + this.part.sizes.length);
    this.root = this.order[0];
  }

  /* A line of h numbers per block: log P of what it shows, by state. */
  shown([ones, holes], combine) {
    const f = this.logFactorial, { h } = this;
    return this.part.sizes.map((_, b) => {
      const lines = [];
      for (let s = 0; s <= holes[b]; s++) {
        const at = (this.part.starts[b] + ones[b] + s) * h, ways = combine === SUMS ? f[holes[b]] - f[s] - f[holes[b] - s] : 0;
        lines.push(Array.from({ length: h }, (_, z) => this.table[at + z] + ways));
      }
      const byState = Array.from({ length: h }, (_, z) => lines.map((line) => line[z]));
      return { byState, log: byState.map((terms) => combine.add(terms)) };
    });
  }

  /* Messages to the root. All are scaled, and `logScale` is the log of what they were scaled by. */
  upward(logs) {
    const { h, edges, parent } = this, messages = [];
    let logScale = 0;
    const up = logs.map((line) => {
      const top = Math.max(...line);
      logScale += top === -Infinity ? 0 : top;
      return Float64Array.from(line, (value) => (top === -Infinity ? 0 : Math.exp(value - top)));
    });
    for (let i = this.order.length - 1; i > 0; i--) {
      const v = this.order[i], above = up[parent[v]], message = new Float64Array(h);
      let highest = 0;
      for (let s = 0; s < h; s++) {
        const at = (v * h + s) * h;
        let sum = 0;
        for (let t = 0; t < h; t++) sum += edges[at + t] * up[v][t];
        message[s] = sum;
        above[s] *= sum;
        highest = Math.max(highest, above[s]);
      }
      messages[v] = message;
      if (highest > 0) { logScale += Math.log(highest); for (let s = 0; s < h; s++) above[s] /= highest; }
    }
    return { up, messages, scores: Float64Array.from(up[this.root], (value) => Math.log(value) + logScale) };
  }

  /* P(state of each block | what is known, state of the root), one line per root's state asked for. */
  posteriors({ up, messages }, states) {
    const { h, edges, parent } = this, found = [];
    found[this.root] = Array.from(states, (state) => Float64Array.from({ length: h }, (_, z) => (z === state ? 1 : 0)));
    for (const v of this.order.slice(1)) {
      found[v] = found[parent[v]].map((above) => {
        const line = new Float64Array(h);
        for (let s = 0; s < h; s++) {
          if (!(above[s] > 0) || !(messages[v][s] > 0)) continue;
          const share = above[s] / messages[v][s], at = (v * h + s) * h;
          for (let t = 0; t < h; t++) line[t] += share * edges[at + t] * up[v][t];
        }
        return line;
      });
    }
    return found;
  }

  evaluate(row, only) {
    const counted = tally(this.part, row), [, holes] = counted, shown = this.shown(counted, SUMS);
    const pass = this.upward(shown.map(({ log }) => log)), { labels } = this.part;
    const asked = Array.from(this.states.keys()).filter((y) => only < 0 || y === only);
    const posteriors = this.posteriors(pass, asked.map((y) => this.states[y]));
    const means = shown.map(({ byState, log }) => byState.map((terms, z) => SUMS.shares(terms, log[z]).reduce((sum, share, s) => sum + share * s, 0)));
    const results = Array.from(this.states, () => null);
    asked.forEach((y, place) => {
      const chance = means.map((line, b) => (holes[b] ? line.reduce((sum, mean, z) => sum + mean * posteriors[b][place][z], 0) / holes[b] : 0));
      results[y] = { score: pass.scores[this.states[y]], predictive: (j) => chance[labels[j]] };
    });
    return results;
  }

  /* Branch and bound: if every state may choose its own completion of a block, the sum over states can
     only grow. The search fixes the block on which states agree least, and goes on where the bound is
     highest. It ends when no bound is above the best completion, or with the gap that is left. */
  mostProbable(row, logPrior, only) {
    const [ones, holes] = tally(this.part, row), { h } = this;
    const asked = Array.from(this.states.keys()).filter((y) => only < 0 || y === only);
    let left = Math.max(16, Math.min(HIDDEN_BRANCHES, HIDDEN_WORK / (3 * holes.length * h * h)));
    let best = { logProb: -Infinity };
    const look = (branch) => {
      const shown = this.shown([branch.ones, branch.holes], MAXIMA), pass = this.upward(shown.map(({ log }) => log));
      const worth = asked.map((y) => pass.scores[this.states[y]] + logPrior[y]), at = highestAt(worth);
      const { counts, block } = this.agree(branch, shown, this.posteriors(pass, [this.states[asked[at]]]));
      const fixed = this.upward(this.shown([counts, new Int32Array(counts.length)], MAXIMA).map(({ log }) => log));
      const exact = asked.map((y) => fixed.scores[this.states[y]] + logPrior[y]), chosen = highestAt(exact);
      if (exact[chosen] > best.logProb) best = { logProb: exact[chosen], class: asked[chosen], counts };
      return { ...branch, bound: worth[at], block };
    };
    const open = [look({ ones, holes })];
    while (left > 0) {
      open.sort((a, b) => a.bound - b.bound);
      if (!open.length || !(open[open.length - 1].bound > best.logProb + CLOSE_ENOUGH)) break;
      const branch = open.pop(), { block } = branch;
      for (let s = 0; s <= branch.holes[block]; s++, left--) {
        const child = { ones: branch.ones.slice(), holes: branch.holes.slice() };
        child.ones[block] += s;
        child.holes[block] = 0;
        open.push(look(child));
      }
    }
    const bound = open.reduce((most, branch) => Math.max(most, branch.bound), best.logProb);
    const wanted = best.counts.map((count, b) => count - ones[b]);
    return {
      logProb: best.logProb, class: best.class, row: fillBlocks(this.part.labels, row, wanted),
      bound: bound > best.logProb + CLOSE_ENOUGH ? bound : best.logProb,
    };
  }

  /* The counts that most of the mass of the states agrees on, and the block on which least of it does. */
  agree(branch, shown, posteriors) {
    const counts = branch.ones.slice();
    let least = Infinity, block = 0;
    shown.forEach(({ byState, log }, b) => {
      const choices = byState.map(highestAt);
      if (choices.every((choice) => choice === choices[0])) { counts[b] += choices[0]; return; }
      const shares = byState[0].map((_, s) => posteriors[b][0].reduce((sum, p, z) => sum + (p > 0 ? p * Math.exp(byState[z][s] - log[z]) : 0), 0));
      const chosen = highestAt(shares);
      counts[b] += chosen;
      if (shares[chosen] < least) { least = shares[chosen]; block = b; }
    });
    return { counts, block };
  }
}

EVALUATORS["hidden trees"] = class extends Evaluator {
  constructor(data, n) {
    super();
    const logFactorial = logFactorials(n);
    this.parts = data.trees.map((tree) => new HiddenTree(tree, n, logFactorial));
    for (const part of this.parts) part.classes = part.states.length;
    this.classes = this.parts.reduce((sum, part) => sum + part.classes, 0);
  }

  evaluate(row, only) { return evaluateParts(this.parts, row, only); }

  mostProbable(row, logPrior, only) { return bestOfParts(this.parts, row, logPrior, only); }
};
