/* Trees: messages from leaves to roots, and the same way back. Where there is a count on top, messages
   have an entry for every number of unknown variables that are on; otherwise they have one. */

EVALUATORS.trees = class extends Evaluator {
  constructor(data, n) {
    super();
    this.classes = data.base.length;
    const line = (values, y, width) => values.subarray(y * width, (y + 1) * width);
    const alone = new Int32Array(n).fill(n), nothing = new Float64Array(n);
    this.trees = Array.from(data.base, (base, y) => {
      const parent = data.parent.length ? line(data.parent, y, n) : alone;
      return {
        parent, order: parentsFirst(parent), slope: line(data.slope, y, n), pair: data.pair.length ? line(data.pair, y, n) : nothing,
        base, table: data.tables.length ? line(data.tables, y, n + 1) : null,
      };
    });
  }

  ofClass(y, row) {
    const tree = this.trees[y], { total, chances } = this.pass(tree, row, SUMS);
    const complete = () => {
      const best = this.pass(tree, row, MAXIMA), on = best.chances();
      return { logProb: best.total, row: row.map((value, j) => (unknown(value) ? Math.round(on[j]) : value)) };
    };
    let found = null;
    return { score: total, predictive: (j) => (found = found || chances())[j], complete };
  }

  /* From leaves to roots, by sums or by maxima: the total, and what part of it has each variable on. */
  pass(tree, row, { add, shares }) {
    const { parent, slope, pair, order, table, base } = tree, n = row.length, counting = table !== null;
    const off = Array.from(row, (value) => (value === 1 ? [-Infinity] : counting && unknown(value) ? [0, -Infinity] : [0]));
    const on = Array.from(row, (value, v) => (value === 0 ? [-Infinity] : counting && unknown(value) ? [-Infinity, slope[v]] : [slope[v]]));
    let whole = [0];
    const steps = [];
    for (let i = n - 1; i >= 0; i--) {
      const v = order[i], p = parent[v], root = p >= n;
      const below = off[v].map((value, l) => add([value, on[v][l]]));
      const belowOn = root ? null : off[v].map((value, l) => add([value, on[v][l] + pair[v]]));
      const step = { v, p, root, before: root ? whole : off[p], beforeOn: root ? null : on[p], below, belowOn };
      steps.push(step);
      if (root) whole = product(whole, below, add);
      else { off[p] = product(off[p], below, add); on[p] = product(on[p], belowOn, add); }
    }
    let ones = 0;
    for (const value of row) if (value === 1) ones++;
    const terms = counting ? whole.map((value, l) => value + table[ones + l]) : whole;
    const total = add(terms) + base;
    return { total, chances: () => this.back({ off, on, pair, steps, n }, shares(terms, total - base), shares) };
  }

  /* From roots to leaves: the share of the total in which each variable is on. */
  back({ off, on, pair, steps, n }, ofCounts, shares) {
    let whole = ofCounts;
    const shareOff = off.map((line) => line.map(() => 0)), shareOn = on.map((line) => line.map(() => 0));
    for (let i = steps.length - 1; i >= 0; i--) {
      const { v, p, root, before, beforeOn, below, belowOn } = steps[i];
      const split = factors(before, below, root ? whole : shareOff[p], shares);
      if (root) whole = split[0];
      else shareOff[p] = split[0];
      shareOff[v].forEach((_, l) => {
        const [low, high] = shares([off[v][l], on[v][l]], below[l]);
        shareOff[v][l] += split[1][l] * low;
        shareOn[v][l] += split[1][l] * high;
      });
      if (root) continue;
      const linked = factors(beforeOn, belowOn, shareOn[p], shares);
      shareOn[p] = linked[0];
      shareOff[v].forEach((_, l) => {
        const [low, high] = shares([off[v][l], on[v][l] + pair[v]], belowOn[l]);
        shareOff[v][l] += linked[1][l] * low;
        shareOn[v][l] += linked[1][l] * high;
      });
    }
    return Float64Array.from({ length: n }, (_, v) => shareOn[v].reduce((sum, share) => sum + share, 0));
  }
};

/* The terms of entry t of a product of two lines: [place in the first, term]. */
function termsOf(a, b, t) {
  const terms = [];
  for (let i = Math.max(0, t - b.length + 1); i <= Math.min(t, a.length - 1); i++) terms.push(a[i] + b[t - i]);
  return terms;
}

/* Both lines' counts add up. */
function product(a, b, add) {
  return Array.from({ length: a.length + b.length - 1 }, (_, t) => add(termsOf(a, b, t)));
}

/* What part of a product is due to each entry of its factors, given that of each of its own entries. */
function factors(a, b, ofProduct, shares) {
  const first = a.map(() => 0), second = b.map(() => 0);
  ofProduct.forEach((share, t) => {
    if (!(share > 0)) return;
    const begin = Math.max(0, t - b.length + 1), terms = termsOf(a, b, t);
    shares(terms, logSum(terms)).forEach((part, i) => {
      first[begin + i] += share * part;
      second[t - begin - i] += share * part;
    });
  });
  return [first, second];
}
