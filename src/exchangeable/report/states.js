/* Trees with a hidden state at every node, the block of some variables; the states of a root are the
   classes. What a node shows is `log`: log P of it in each of h states. */

const SEARCH_WORK = 2e7, MOST_BRANCHES = 512, CLOSE_ENOUGH = 1e-9;

class StateTree {
  constructor({ parent, edges, states }, h) {
    Object.assign(this, { parent, edges, states, h, order: parentsFirst(parent), classes: states.length });
    this.root = this.order[0];
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

  /* P(state of each node | what is known, state of the root), one line per root's state asked for. */
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

  /* The classes that are asked for: one, or all where `only` < 0. */
  asked(only) { return Array.from(this.states.keys()).filter((y) => only < 0 || y === only); }

  /* Branch and bound over the ways in which nodes can be completed, `choices`: lists of `log`. If every
     state may choose its own completion of a node, the sum over states can only grow. The search fixes
     the node on which states agree least, and goes on where the bound is highest. It ends when no bound
     is above the best completion, or with the gap that is left. */
  search(choices, logPrior, only, most = MOST_BRANCHES) {
    const { h } = this, asked = this.asked(only), highest = choices.map((ways) => (
      Float64Array.from({ length: h }, (_, z) => ways.reduce((top, { log }) => Math.max(top, log[z]), -Infinity))));
    let left = Math.max(16, Math.min(most, SEARCH_WORK / (3 * choices.length * h * h))), best = { logProb: -Infinity };
    const look = (chosen) => {
      const pass = this.upward(choices.map((ways, b) => (chosen[b] < 0 ? highest[b] : ways[chosen[b]].log)));
      const worth = asked.map((y) => pass.scores[this.states[y]] + logPrior[y]), at = highestAt(worth);
      const { agreed, block } = this.agree(choices, highest, chosen, this.posteriors(pass, [this.states[asked[at]]]));
      const fixed = this.upward(choices.map((ways, b) => ways[agreed[b]].log));
      const exact = asked.map((y) => fixed.scores[this.states[y]] + logPrior[y]), place = highestAt(exact);
      if (exact[place] > best.logProb) best = { logProb: exact[place], class: asked[place], chosen: agreed };
      return { chosen, bound: worth[at], block };
    };
    const first = look(Int32Array.from(choices, (ways) => (ways.length > 1 ? -1 : 0))), open = [first];
    while (left > 0) {
      open.sort((a, b) => a.bound - b.bound);
      if (!open.length || !(open[open.length - 1].bound > best.logProb + CLOSE_ENOUGH)) break;
      const { chosen, block } = open.pop();
      for (let way = 0; way < choices[block].length; way++, left--) {
        const child = chosen.slice();
        child[block] = way;
        open.push(look(child));
      }
    }
    const bound = open.reduce((top, branch) => Math.max(top, branch.bound), best.logProb);
    return { ...best, first: first.bound, bound: bound > best.logProb + CLOSE_ENOUGH ? bound : best.logProb };
  }

  /* The completions that most of the mass of the states agrees on, and the node on which least of it does. */
  agree(choices, highest, chosen, posteriors) {
    const agreed = chosen.slice();
    let least = Infinity, block = 0;
    choices.forEach((ways, b) => {
      if (chosen[b] >= 0) return;
      const preferred = Array.from({ length: this.h }, (_, z) => highestAt(ways.map(({ log }) => log[z])));
      if (preferred.every((way) => way === preferred[0])) { [agreed[b]] = preferred; return; }
      const shares = ways.map(({ log }) => posteriors[b][0].reduce((sum, p, z) => sum + (p > 0 ? p * Math.exp(log[z] - highest[b][z]) : 0), 0));
      agreed[b] = highestAt(shares);
      if (shares[agreed[b]] < least) { least = shares[agreed[b]]; block = b; }
    });
    return { agreed, block };
  }
}
