/* Trees over the counts of blocks: messages between bins, and the same way back. */

EVALUATORS["count trees"] = class extends Evaluator {
  constructor(data, n) {
    super();
    this.classes = data.classes.length;
    this.logFactorial = logFactorials(n);
    this.trees = data.classes.map(({ labels, bins, parent, table, ratio }) => {
      const [part] = layOut(labels, n);
      const nBins = part.sizes.map((size, b) => bins[part.starts[b] + size] + 1);
      let begin = 0;
      const cells = nBins.map((width, b) => {
        const first = begin;
        begin += parent[b] < nBins.length ? width * nBins[parent[b]] : 0;
        return first;
      });
      return { part, bins, nBins, cells, parent, table, ratio, order: parentsFirst(parent) };
    });
  }

  ofClass(y, row) {
    const tree = this.trees[y], { labels } = tree.part, shown = tally(tree.part, row);
    const { total, expected } = this.pass(tree, shown, SUMS);
    const complete = () => {
      const best = this.pass(tree, shown, MAXIMA);
      return { logProb: best.total, row: fillBlocks(labels, row, best.expected().map(Math.round)) };
    };
    let found = null;
    return { score: total, predictive: (j) => (found = found || expected())[labels[j]] / shown[1][labels[j]], complete };
  }

  /* From leaves to roots, by sums or by maxima: the total, and how many unknown ones blocks expect. */
  pass(tree, [ones, holes], combine) {
    const { part, bins, nBins, cells, parent, table, ratio, order } = tree, f = this.logFactorial;
    const ways = (h, s) => (combine === SUMS ? f[h] - f[s] - f[h - s] : 0);
    const shown = part.sizes.map((_, b) => {
      const first = part.starts[b] + ones[b], byBin = Array.from({ length: nBins[b] }, () => ({ counts: [], terms: [] }));
      for (let s = 0; s <= holes[b]; s++) {
        byBin[bins[first + s]].counts.push(s);
        byBin[bins[first + s]].terms.push(table[first + s] + ways(holes[b], s));
      }
      return byBin;
    });
    const own = shown.map((byBin) => byBin.map(({ terms }) => combine.add(terms)));
    const value = own.map((line) => line.slice()), messages = [];
    let total = 0;
    const linked = (b, above) => value[b].map((each, z) => each + ratio[cells[b] + above * nBins[b] + z]);
    for (const b of order.slice().reverse()) {
      const p = parent[b];
      if (p >= nBins.length) { total += combine.add(value[b]); continue; }
      messages[b] = value[p].map((_, above) => combine.add(linked(b, above)));
      messages[b].forEach((message, above) => { value[p][above] += message; });
    }
    const expected = () => {
      const share = [], counts = new Float64Array(nBins.length);
      for (const b of order) {
        const p = parent[b];
        if (p >= nBins.length) share[b] = combine.shares(value[b], combine.add(value[b]));
        else {
          share[b] = value[b].map(() => 0);
          share[p].forEach((above, z) => {
            if (above > 0) combine.shares(linked(b, z), messages[b][z]).forEach((each, w) => { share[b][w] += above * each; });
          });
        }
        shown[b].forEach(({ counts: listed, terms }, z) => {
          if (share[b][z] > 0) combine.shares(terms, own[b][z]).forEach((each, i) => { counts[b] += share[b][z] * each * listed[i]; });
        });
      }
      return counts;
    };
    return { total, expected };
  }
};
