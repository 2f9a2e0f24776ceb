/* Trees with hidden states whose blocks are models of their own, of which the classes are the states. */

const MOST_WAYS = 256, FEW_BRANCHES = 32;

class LeafTree extends StateTree {
  constructor(data, n) {
    super(data, data.h);
    this.leaves = data.leaves.map(({ variables, levels, model }) => ({ variables, levels, model: evaluatorOf(model, variables.length) }));
    this.place = new Array(n);
    this.leaves.forEach(({ variables }, b) => variables.forEach((j, i) => { this.place[j] = [b, i]; }));
  }

  /* What every block shows in each of its states. */
  shown(row) { return this.leaves.map(({ variables, model }) => model.evaluate(Float64Array.from(variables, (j) => row[j]), -1)); }

  evaluate(row, only) {
    const shown = this.shown(row), pass = this.upward(shown.map((states) => states.map(({ score }) => score)));
    const asked = this.asked(only), posteriors = this.posteriors(pass, asked.map((y) => this.states[y]));
    const results = Array.from(this.states, () => null);
    asked.forEach((y, at) => {
      const predictive = (j) => { const [b, i] = this.place[j]; return averaged(posteriors[b][at], shown[b].map((state) => state.predictive(i))); };
      results[y] = { score: pass.scores[this.states[y]], predictive };
    });
    return results;
  }

  /* In which ways a block can be completed: all of them, or, if they are too many, the best of each state. */
  ways({ variables, levels, model }, row, states) {
    const own = Float64Array.from(variables, (j) => row[j]), holes = Array.from(own.keys()).filter((i) => unknown(own[i]));
    const listed = holes.reduce((product, i) => product * (levels[i] || Infinity), 1) <= MOST_WAYS;
    let rows = [own];
    if (model.alternatives) return { listed: true, ways: model.alternatives(own).map((each) => this.way(model, each)) };
    if (listed) for (const i of holes) rows = rows.flatMap((each) => Array.from({ length: levels[i] }, (_, v) => Float64Array.from(each, (value, k) => (k === i ? v : value))));
    else rows = [...new Map(states.map((state) => state.complete().row).map((each) => [each.join(), each])).values()];
    return { listed, ways: rows.map((each) => this.way(model, each)) };
  }

  /* A completion of a block, and what it scores in each state. */
  way(model, own) { return { own, log: model.evaluate(own, -1).map(({ score }) => score) }; }

  mostProbable(row, logPrior, only) {
    const shown = this.shown(row), found = this.leaves.map((leaf, b) => this.ways(leaf, row, shown[b])), choices = found.map(({ ways }) => ways);
    const loose = found.some(({ listed, ways }) => !listed && ways.length > 1);
    const best = this.search(choices, logPrior, only, loose ? FEW_BRANCHES : MOST_BRANCHES), filled = Float64Array.from(row);
    this.leaves.forEach(({ variables }, b) => variables.forEach((j, i) => { filled[j] = choices[b][best.chosen[b]].own[i]; }));
    return { logProb: best.logProb, class: best.class, row: filled, bound: loose ? Math.max(best.first, best.bound) : best.bound };
  }
}

EVALUATORS["leaf trees"] = class extends Evaluator {
  constructor(data, n) {
    super();
    this.parts = data.trees.map((tree) => new LeafTree(tree, n));
    this.classes = this.parts.reduce((sum, part) => sum + part.classes, 0);
  }

  evaluate(row, only) { return evaluateParts(this.parts, row, only); }

  mostProbable(row, logPrior, only) { return bestOfParts(this.parts, row, logPrior, only); }
};
