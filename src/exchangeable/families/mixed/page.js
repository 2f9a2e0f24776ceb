/* Columns of mixed kinds: products of parts, each over columns of one kind. A part's `ofClass(y, own)`
   takes its own columns; `predictive(i)` is of the i-th of them, and `fill()` completes them. */

EVALUATORS.mixed = class extends Evaluator {
  constructor({ classes, parts }, n) {
    super();
    this.classes = classes;
    this.parts = parts.map((part) => new MIXED_PARTS[part.name](part, classes));
    this.place = new Array(n);
    parts.forEach(({ columns }, p) => columns.forEach((column, i) => { this.place[column] = [p, i]; }));
  }

  ofClass(y, row) {
    const found = this.parts.map((part) => part.ofClass(y, Float64Array.from(part.columns, (j) => row[j])));
    const predictive = (j) => { const [p, i] = this.place[j]; return found[p].predictive(i); };
    return { score: found.reduce((sum, { score }) => sum + score, 0), predictive, complete: () => this.complete(y, row, found) };
  }

  complete(y, row, found) {
    const filled = row.slice();
    this.parts.forEach((part, p) => { const own = found[p].fill(); part.columns.forEach((j, i) => { filled[j] = own[i]; }); });
    const scores = this.parts.map((part) => part.ofClass(y, Float64Array.from(part.columns, (j) => filled[j])).score);
    return { logProb: scores.reduce((sum, score) => sum + score, 0), row: filled };
  }
};

class MixedPart {
  constructor(data, classes) {
    Object.assign(this, data);
    this.k = classes;
    let begin = 0;
    this.starts = Array.from(this.levels, (size) => { const first = begin; begin += size; return first; });
  }

  /* The parameters of a class: entry i of an array whose last axis is that of the classes. */
  of(values, y) { return (i) => values[i * this.k + y]; }
}

/* Fills unknown entries, each by its own best value. */
function filledBy(own, best) { return own.map((value, i) => (unknown(value) ? best(i) : value)); }

class LevelPart extends MixedPart {
  ofClass(y, own) {
    const logShare = this.of(this.log_shares, y);
    const predictive = (i) => Array.from({ length: this.levels[i] }, (_, v) => Math.exp(logShare(this.starts[i] + v)));
    const score = own.reduce((sum, value, i) => (unknown(value) ? sum : sum + logShare(this.starts[i] + value)), 0);
    return { score, predictive, fill: () => filledBy(own, (i) => highestAt(predictive(i))) };
  }
}

/* Items of a scale: what unknown levels may add to the total, from the last of them to the first. */
class ScalePart extends MixedPart {
  ofClass(y, own) {
    const share = this.of(this.shares, y), ratio = this.of(this.ratio, y), nTotals = this.ratio.length / this.k;
    const holes = Array.from(own.keys()).filter((i) => unknown(own[i]));
    const known = own.reduce((sum, value) => (unknown(value) ? sum : sum + value), 0), width = nTotals - known;
    const look = (join) => {
      const later = [Array.from({ length: width }, (_, s) => ratio(known + s))], choices = [];
      for (const i of holes.slice().reverse()) {
        const after = later[0], line = new Array(width).fill(0), chosen = new Array(width).fill(0);
        for (let s = 0; s < width; s++) {
          for (let v = 0; v < Math.min(this.levels[i], width - s); v++) {
            const each = share(this.starts[i] + v) * after[s + v];
            if (join === "sum") line[s] += each;
            else if (each > line[s]) { line[s] = each; chosen[s] = v; }
          }
        }
        later.unshift(line);
        choices.unshift(chosen);
      }
      return { later, choices };
    };
    const { later } = look("sum");
    const score = own.reduce((sum, value, i) => (unknown(value) ? sum : sum + Math.log(share(this.starts[i] + value))), Math.log(later[0][0]));
    let tables = null;
    const levels = () => {
      const found = [];
      let reached = new Array(width).fill(0);
      reached[0] = 1;
      holes.forEach((i, place) => {
        const after = new Array(width).fill(0);
        found[i] = Array.from({ length: this.levels[i] }, (_, v) => {
          let mass = 0;
          for (let s = 0; s + v < width; s++) {
            after[s + v] += share(this.starts[i] + v) * reached[s];
            mass += reached[s] * later[place + 1][s + v];
          }
          return (share(this.starts[i] + v) * mass) / later[0][0];
        });
        reached = after;
      });
      return found;
    };
    const fill = () => {
      const { choices } = look("best"), filled = own.slice();
      let soFar = 0;
      holes.forEach((i, place) => { filled[i] = choices[place][soFar]; soFar += filled[i]; });
      return filled;
    };
    return { score, predictive: (i) => (tables = tables || levels())[i], fill };
  }
}

/* Items that are alike: an urn to which every item that is drawn adds another of its level. */
class LevelUrnPart extends MixedPart {
  ofClass(y, own) {
    const weight = this.of(this.weights, y), nLevels = this.weights.length / this.k;
    const held = Array.from({ length: nLevels }, (_, v) => weight(v)), whole = held.reduce((sum, each) => sum + each, 0);
    let score = 0, drawn = 0;
    for (const value of own) {
      if (unknown(value)) continue;
      score += Math.log(held[value]) - Math.log(whole + drawn);
      held[value]++;
      drawn++;
    }
    const shares = held.map((each) => each / (whole + drawn)), open = own.length - drawn;
    const gain = (each) => { let sum = 0; for (let i = 0; i < open; i++) sum += Math.log(each + i); return sum; };
    return { score, predictive: () => shares, fill: () => filledBy(own, () => highestAt(held.map(gain))) };
  }
}

/* log P(x) of a negative binomial distribution; an infinite size stands for Poisson's. */
function logCount(x, mean, size) {
  if (size === Infinity) return (x > 0 ? x * Math.log(mean) : 0) - mean - logGamma(x + 1);
  const wide = logGamma(x + size) - logGamma(size) + size * Math.log(size / (size + mean));
  return wide + (x > 0 ? x * Math.log(mean / (size + mean)) : 0) - logGamma(x + 1);
}

/* The probabilities of all counts but a tail that does not count. */
function countShares(mean, size) {
  const step = (x) => (size === Infinity ? mean / (x + 1) : ((x + size) / (x + 1)) * (mean / (size + mean)));
  const logs = [logCount(0, mean, size)];
  let reached = Math.exp(logs[0]);
  for (let x = 0; x < 1e6 && !(reached > 1 - 1e-13 && x > mean) && !(x > mean && logs[x] < -40); x++) {
    logs.push(logs[x] + Math.log(step(x)));
    reached += Math.exp(logs[x + 1]);
  }
  return logs.map(Math.exp);
}

class CountPart extends MixedPart {
  ofClass(y, own) {
    const mean = this.of(this.means, y), size = this.of(this.sizes, y);
    const score = own.reduce((sum, x, i) => (unknown(x) ? sum : sum + logCount(x, mean(i), size(i))), 0);
    const mode = (i) => Math.floor(size(i) === Infinity ? mean(i) : (Math.max(size(i) - 1, 0) * mean(i)) / size(i));
    return { score, predictive: (i) => countShares(mean(i), size(i)), fill: () => filledBy(own, mode) };
  }
}

/* Counts in bins, inside which all classes have the same distribution. */
class CountBinPart extends MixedPart {
  constructor(data, classes) {
    super(data, classes);
    this.starts = Array.from(this.lows.keys()).filter((cell) => this.lows[cell] === 0);
    this.n = this.columns.length;
  }

  cell(i, x) {
    const end = i + 1 < this.n ? this.starts[i + 1] : this.lows.length;
    let cell = this.starts[i];
    while (cell + 1 < end && this.lows[cell + 1] <= x) cell++;
    return cell;
  }

  ofClass(y, own) {
    const logShare = this.of(this.log_shares, y);
    const log = (i, x) => { const cell = this.cell(i, x); return logShare(cell) + logCount(x, this.usual[i], this.usual[this.n + i]) - this.mass[cell]; };
    const predictive = (i) => Array.from({ length: this.ends[i] + 1 }, (_, x) => Math.exp(log(i, x)));
    const score = own.reduce((sum, x, i) => (unknown(x) ? sum : sum + log(i, x)), 0);
    return { score, predictive, fill: () => filledBy(own, (i) => highestAt(predictive(i))) };
  }
}

/* Counts that go together: multinomial given their total. */
class TallyPart extends MixedPart {
  ofClass(y, own) {
    const share = (i) => Math.exp(this.log_shares[i * this.k + y]), mean = this.means[y], size = this.sizes[y];
    const holes = Array.from(own.keys()).filter((i) => unknown(own[i]));
    const total = own.reduce((sum, x) => (unknown(x) ? sum : sum + x), 0);
    const open = holes.length === own.length ? 1 : Math.min(holes.reduce((sum, i) => sum + share(i), 0), 1), closed = 1 - open;
    let score = 0;
    if (closed > 0) {
      score = logGamma(total + 1) - total * Math.log(closed) + logCount(total, Math.max(mean * closed, Number.MIN_VALUE), size);
      own.forEach((x, i) => { if (!unknown(x)) score += (x > 0 ? x * Math.log(share(i)) : 0) - logGamma(x + 1); });
    }
    const poisson = size === Infinity;
    const restMean = mean * open * (poisson ? 1 : (size + total) / (size + mean * closed)), restSize = poisson ? size : size + total;
    const predictive = (i) => countShares(Math.max(restMean * Math.min(share(i) / Math.max(open, 1e-300), 1), 1e-300), restSize);
    return { score, predictive, fill: () => this.fill(own, holes, holes.map(share), restMean + 1e-300, restSize) };
  }

  /* Units are added where they gain most, as many as is most probable. */
  fill(own, holes, shares, mean, size) {
    const whole = shares.reduce((sum, each) => sum + each, 0), counts = shares.map(() => 0);
    let best = counts.slice();
    if (whole > 0) {
      const parts = shares.map((each) => each / whole), logTotals = countShares(mean, size).map(Math.log);
      let split = 0, highest = logTotals[0];
      for (let total = 1; total < logTotals.length; total++) {
        const i = highestAt(parts.map((each, at) => each / (counts[at] + 1)));
        counts[i]++;
        split += Math.log(parts[i]) - Math.log(counts[i]) + Math.log(total);
        if (logTotals[total] + split > highest) { highest = logTotals[total] + split; best = counts.slice(); }
      }
    }
    const filled = own.slice();
    holes.forEach((i, place) => { filled[i] = best[place]; });
    return filled;
  }
}

/* Counts that come in bursts: an urn to which every unit that is drawn adds another of its column. */
class PolyaPart extends MixedPart {
  ofClass(y, own) {
    const weight = this.of(this.weights, y), mean = this.means[y], size = this.sizes[y];
    const holes = Array.from(own.keys()).filter((i) => unknown(own[i]));
    const whole = own.reduce((sum, _, i) => sum + weight(i), 0), open = holes.reduce((sum, i) => sum + weight(i), 0);
    const total = own.reduce((sum, x) => (unknown(x) ? sum : sum + x), 0);
    let score = 0;
    own.forEach((x, i) => { if (x > 0) score += logGamma(x + weight(i)) - logGamma(weight(i)) - logGamma(x + 1); });
    const logs = holes.length ? this.openTotals(total, open, whole, mean, size) : [this.logTotal(total, whole, mean, size)];
    const sum = logSum(logs), shares = logs.map((each) => Math.exp(each - sum));
    const predictive = (i) => splitCount(shares, weight(i), Math.max(open - weight(i), 0));
    return { score: score + sum, predictive, fill: () => this.fill(own, holes.map((i) => [i, weight(i)]), total, { whole, mean, size }) };
  }

  /* log q(t)·t! / (A)_t */
  logTotal(t, whole, mean, size) {
    return logCount(t, mean, size) + logGamma(t + 1) - logGamma(whole + t) + logGamma(whole);
  }

  /* The same for totals t + r, times (weight of the unknown)_r / r!, for r = 0, 1, … */
  openTotals(t, weight, whole, mean, size) {
    const p = size === Infinity ? mean : mean / (size + mean), least = countShares(mean, size).length;
    const logs = [this.logTotal(t, whole, mean, size)];
    let highest = logs[0];
    for (let r = 0; r < 1e6; r++) {
      const ratio = (p * (weight + r) * (size === Infinity ? 1 : size + t + r)) / ((r + 1) * (whole + t + r));
      logs.push(logs[r] + Math.log(ratio));
      highest = Math.max(highest, logs[r + 1]);
      if (r >= least && logs[r + 1] < highest - 45) break;
    }
    return logs;
  }

  /* The counts that are jointly most probable: the best for every total, column by column. */
  fill(own, holes, known, { whole, mean, size }) {
    const end = countShares(mean, size).length, units = Array.from({ length: end + 1 }, (_, t) => t);
    let best = units.map((t) => (t === 0 ? 0 : -Infinity));
    const choices = holes.map(([, weight]) => {
      const gain = units.map((x) => logGamma(weight + x) - logGamma(weight) - logGamma(x + 1)), chosen = [];
      best = units.map((t) => {
        let highest = -Infinity;
        chosen[t] = 0;
        for (let x = 0; x <= t; x++) if (best[t - x] + gain[x] > highest) { highest = best[t - x] + gain[x]; chosen[t] = x; }
        return highest;
      });
      return chosen;
    });
    let left = highestAt(units.map((t) => this.logTotal(known + t, whole, mean, size) + best[t]));
    const filled = own.slice();
    for (let place = holes.length - 1; place >= 0; place--) {
      filled[holes[place][0]] = choices[place][left];
      left -= choices[place][left];
    }
    return filled;
  }
}

/* How a column's count is distributed, given how the total of it and others is. */
function splitCount(shares, own, others) {
  if (!(others > 0)) return shares;
  const rising = (weight) => shares.map((_, x) => logGamma(weight + x) - logGamma(weight) - logGamma(x + 1));
  const mine = rising(own), rest = rising(others), both = rising(own + others), found = shares.map(() => 0);
  shares.forEach((share, t) => {
    if (share > 0) for (let x = 0; x <= t; x++) found[x] += share * Math.exp(mine[x] + rest[t - x] - both[t]);
  });
  return found;
}

class NormalPart extends MixedPart {
  ofClass(y, own) {
    const mean = this.of(this.means, y), variance = this.of(this.variances, y);
    const score = own.reduce((sum, x, i) => (unknown(x) ? sum : sum - 0.5 * (Math.log(2 * Math.PI * variance(i)) + (x - mean(i)) ** 2 / variance(i))), 0);
    return { score, predictive: (i) => ({ mean: mean(i), variance: variance(i) }), fill: () => filledBy(own, mean) };
  }
}

/* Measurements with a shared factor, about which the known ones tell. */
class FactorPart extends MixedPart {
  ofClass(y, own) {
    const mean = this.of(this.means, y), loading = this.of(this.loadings, y), variance = this.of(this.variances, y);
    let precision = 1, pull = 0, score = 0;
    own.forEach((x, i) => {
      if (unknown(x)) return;
      precision += loading(i) ** 2 / variance(i);
      pull += ((x - mean(i)) * loading(i)) / variance(i);
      score += Math.log(2 * Math.PI * variance(i)) + (x - mean(i)) ** 2 / variance(i);
    });
    score = -0.5 * (score + Math.log(precision) - pull ** 2 / precision);
    const centre = (i) => mean(i) + (loading(i) * pull) / precision;
    const predictive = (i) => ({ mean: centre(i), variance: variance(i) + loading(i) ** 2 / precision });
    return { score, predictive, fill: () => filledBy(own, centre) };
  }
}

const MIXED_PARTS = {
  levels: LevelPart, scale: ScalePart, "level urn": LevelUrnPart, counts: CountPart, "count bins": CountBinPart,
  tally: TallyPart, polya: PolyaPart, normals: NormalPart, factor: FactorPart, alike: FactorPart,
};
