/* Blocks with statistics: sums over the paths of automata that read the variables. A table has a line
   for each state, and in it an entry for each total so far. */

class Reader {
  constructor({ n, moves, gains, final, width, place }) {
    Object.assign(this, { n, moves, gains, final, width, place, states: final.length });
    this.symbols = moves.length / final.length;
    this.values = place.reduce((most, value) => Math.max(most, value), -1) + 1;
  }

  empty() { return new Float64Array(this.states * this.width).fill(-Infinity); }

  /* Calls `visit(from, to, symbol)` for the entries that are linked by reading a symbol. */
  links(visit) {
    const { states, symbols, width, moves, gains } = this;
    for (let s = 0; s < states; s++) for (let x = 0; x < symbols; x++) {
      const gain = gains[s * symbols + x], to = moves[s * symbols + x] * width + gain;
      for (let c = 0; c + gain < width; c++) visit(s * width + c, to + c, x);
    }
  }

  /* Calls `visit(entry, value)` for the entries after the last variable that stand for a value. */
  ends(visit) {
    for (let s = 0; s < this.states; s++) for (let c = 0; c < this.width; c++) {
      const value = this.place[c + this.final[s]];
      if (value >= 0) visit(s * this.width + c, value);
    }
  }

  /* The log-weight of all ways to each entry; `weights` has a line of symbols for each variable. */
  forward(weights) {
    const tables = [this.empty()];
    tables[0][0] = 0;
    for (let i = 0; i < this.n; i++) {
      const before = tables[i], after = this.empty();
      this.links((from, to, x) => { if (before[from] > -Infinity) after[to] = logAdd(after[to], before[from] + weights[i][x]); });
      tables.push(after);
    }
    return tables;
  }

  /* That of all ways from each entry to the end, where values weigh what they do. */
  backward(weights, byValue) {
    const tables = new Array(this.n + 1);
    tables[this.n] = this.empty();
    this.ends((entry, value) => { tables[this.n][entry] = byValue[value]; });
    for (let i = this.n - 1; i >= 0; i--) {
      const after = tables[i + 1], before = this.empty();
      this.links((from, to, x) => { before[from] = logAdd(before[from], after[to] + weights[i][x]); });
      tables[i] = before;
    }
    return tables;
  }

  /* The log of how many assignments have each value. */
  sizes(forward) {
    const found = new Float64Array(this.values).fill(-Infinity), last = forward[this.n];
    this.ends((entry, value) => { found[value] = logAdd(found[value], last[entry]); });
    return found;
  }

  /* What everything but a variable's own weight makes of each of its symbols. */
  outside(forward, backward) {
    return Array.from({ length: this.n }, (_, i) => {
      const found = new Float64Array(this.symbols).fill(-Infinity), before = forward[i], after = backward[i + 1];
      this.links((from, to, x) => { if (before[from] > -Infinity) found[x] = logAdd(found[x], before[from] + after[to]); });
      return found;
    });
  }

  /* Symbols that have some value. */
  word(weights, value) {
    const wanted = Float64Array.from({ length: this.values }, (_, v) => (v === value ? 0 : -Infinity));
    const after = this.backward(weights, wanted), word = [];
    let state = 0, total = 0;
    for (let i = 0; i < this.n; i++) {
      let x = 0;
      const next = () => this.moves[state * this.symbols + x] * this.width + total + this.gains[state * this.symbols + x];
      const able = () => total + this.gains[state * this.symbols + x] < this.width && weights[i][x] > -Infinity && after[i + 1][next()] > -Infinity;
      while (!able()) x++;
      word.push(x);
      total += this.gains[state * this.symbols + x];
      state = this.moves[state * this.symbols + x];
    }
    return word;
  }
}

/* What a statistic says of a row: the `sizes` of the sets of completions by value, `masses` of 0 and 1
   of each variable where values weigh something, and a completion for a value. */
class PlainStatistic {
  constructor(data) { this.reader = new Reader(data); }

  read(row) {
    const { reader } = this, weights = Array.from(row, (known) => [0, 1].map((x) => (unknown(known) || known === x ? 0 : -Infinity)));
    const forward = reader.forward(weights);
    return {
      sizes: reader.sizes(forward),
      masses: (byValue) => reader.outside(forward, reader.backward(weights, byValue)),
      complete: (value) => reader.word(weights, value),
    };
  }
}

class NestedStatistic {
  constructor({ outer, inner, which, groups }) {
    const made = inner.map(statisticOf);
    Object.assign(this, { reader: new Reader(outer), inner: which.map((number) => made[number]), groups });
  }

  read(row) {
    const { reader, groups } = this;
    const inner = groups.map((group, g) => this.inner[g].read(Float64Array.from(group, (j) => row[j])));
    const weights = inner.map(({ sizes }) => sizes), forward = reader.forward(weights);
    const spread = (parts) => { const whole = new Array(row.length); groups.forEach((group, g) => group.forEach((j, i) => { whole[j] = parts[g][i]; })); return whole; };
    return {
      sizes: reader.sizes(forward),
      masses: (byValue) => spread(reader.outside(forward, reader.backward(weights, byValue)).map((outside, g) => inner[g].masses(outside))),
      complete: (value) => spread(reader.word(weights, value).map((symbol, g) => inner[g].complete(symbol))),
    };
  }
}

function statisticOf(data) { return data.outer === undefined ? new PlainStatistic(data) : new NestedStatistic(data); }

EVALUATORS.statistics = class extends Evaluator {
  constructor({ classes, blocks, others, rest }, n) {
    super();
    this.classes = classes;
    this.others = others;
    this.rest = rest.length ? evaluatorOf(rest[0], others.length) : null;
    this.blocks = blocks.map(({ variables, statistic, urns }) => {
      const values = urns.length / classes, byClass = Array.from({ length: classes }, (_, y) => urns.subarray(y * values, (y + 1) * values));
      return { variables, statistic: statisticOf(statistic), urns: byClass };
    });
    this.place = new Array(n);
    this.blocks.forEach(({ variables }, b) => variables.forEach((j, i) => { this.place[j] = [b, i]; }));
    others.forEach((j, i) => { this.place[j] = [-1, i]; });
    if (this.rest === null && blocks.length === 1) this.alternatives = (row) => this.oneOfEach(row);
  }

  read(row) { return this.blocks.map(({ variables, statistic }) => statistic.read(Float64Array.from(variables, (j) => row[j]))); }

  evaluate(row, only) {
    const read = this.read(row), rest = this.rest && this.rest.evaluate(Float64Array.from(this.others, (j) => row[j]), only);
    return Array.from({ length: this.classes }, (_, y) => (only < 0 || y === only ? this.answer(y, row, read, rest && rest[y]) : null));
  }

  answer(y, row, read, rest) {
    const masses = [];
    const score = read.reduce((sum, { sizes }, b) => sum + logSum(sizes.map((size, t) => size + this.blocks[b].urns[y][t])), rest ? rest.score : 0);
    const predictive = (j) => {
      const [b, i] = this.place[j];
      if (b < 0) return rest.predictive(i);
      const [off, on] = (masses[b] = masses[b] || read[b].masses(this.blocks[b].urns[y]))[i];
      return Math.exp(on - logAdd(off, on));
    };
    return { score, predictive, complete: () => this.complete(y, row, read, rest) };
  }

  complete(y, row, read, rest) {
    const filled = Float64Array.from(row), made = rest && rest.complete();
    let logProb = made ? made.logProb : 0;
    if (made) this.others.forEach((j, i) => { filled[j] = made.row[i]; });
    read.forEach(({ sizes, complete }, b) => {
      const urns = this.blocks[b].urns[y], best = highestAt(Array.from(sizes, (size, t) => (size > -Infinity ? urns[t] : -Infinity)));
      logProb += urns[best];
      const word = complete(best);
      this.blocks[b].variables.forEach((j, i) => { filled[j] = word[i]; });
    });
    return { logProb, row: filled };
  }

  /* A completion for every value that the only block can have: the best is among them, whatever states weigh. */
  oneOfEach(row) {
    const [{ sizes, complete }] = this.read(row), { variables } = this.blocks[0];
    const able = Array.from(sizes.keys()).filter((t) => sizes[t] > -Infinity);
    return able.map((t) => { const filled = Float64Array.from(row), word = complete(t); variables.forEach((j, i) => { filled[j] = word[i]; }); return filled; });
  }
};
