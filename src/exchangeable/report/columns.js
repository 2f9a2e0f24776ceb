/* What columns of each kind are set by, and how their values and distributions are told. */

class Column {
  constructor({ kind, levels, transform, ends }) {
    Object.assign(this, { kind, levels, ends });
    this.transform = transform || [1, 0, 1];
    this.plain = kind === "binary" && levels[0] === "0" && levels[1] === "1";
  }

  /* Yeo and Johnson's bend of a measurement, shifted and scaled; back; and the log of its slope. */
  apply(x) {
    const [power, shift, scale] = this.transform;
    const bent = (value, by) => (by === 0 ? Math.log1p(value) : Math.expm1(by * Math.log1p(value)) / by);
    const y = power === 1 ? x : x >= 0 ? bent(x, power) : -bent(-x, 2 - power);
    return (y - shift) / scale;
  }

  invert(z) {
    if (this.kind !== "continuous") return z;
    const [power, shift, scale] = this.transform, y = z * scale + shift;
    if (power === 1) return y;
    const back = (value, by) => Math.expm1(Math.min(by === 0 ? value : Math.log1p(by * value) / by, 708));
    return y >= 0 ? back(y, power) : -back(-y, 2 - power);
  }

  logSlope(z) {
    if (this.kind !== "continuous") return 0;
    const [power, , scale] = this.transform, x = this.invert(z);
    return (power - 1) * Math.sign(x) * Math.log1p(Math.abs(x)) - Math.log(scale);
  }

  /* A known value in words. */
  text(value) {
    if (this.levels.length) return this.levels[value];
    return this.kind === "count" ? String(value) : brief(this.invert(value));
  }

  /* A digit less than what a slider's step is worth, so that values stay short. */
  rounded(x) {
    const step = (this.ends[1] - this.ends[0]) / 200 || 1, unit = 10 ** Math.floor(Math.log10(step));
    return Number((Math.round(x / unit) * unit).toPrecision(12));
  }

  /* What is told of the distribution beside its picture. */
  summary(told) {
    if (this.kind === "binary" && this.plain) return shown(told.on);
    if (this.levels.length) { const best = highestAt(told.shares); return `${this.levels[best]} ${shown(told.shares[best])}`; }
    return `mean ${brief(told.mean)}`;
  }

  /* How far a distribution is from another, for sorting: half the absolute differences, or standard deviations. */
  moved(now, before) {
    if (now === null || before === null) return 0;
    if (this.kind === "continuous") return Math.abs(now.mean - before.mean) / (before.deviation || 1);
    const width = Math.max(now.shares.length, before.shares.length);
    let sum = 0;
    for (let v = 0; v < width; v++) sum += Math.abs((now.shares[v] || 0) - (before.shares[v] || 0)) / 2;
    return sum;
  }

  density(told, x) {
    const z = this.apply(x), slope = Math.exp(this.logSlope(z));
    return slope * told.weights.reduce((sum, weight, y) => sum + (weight / Math.sqrt(2 * Math.PI * told.variances[y])) * Math.exp((-0.5 * (z - told.means[y]) ** 2) / told.variances[y]), 0);
  }

  /* What sets the column: `set(value)` is called with a number, NaN for unknown. Returns the element and
     a function that shows a value. */
  control(name, j, set) {
    if (this.plain) return this.radios(name, j, set);
    if (this.levels.length) return this.dropDown(name, set);
    return this.kind === "count" ? this.field(name, set, { min: 0, step: 1, placeholder: "not known" }, Number) : this.slider(name, set);
  }

  radios(name, j, set) {
    const group = make("fieldset", { class: "set", role: "radiogroup", "aria-label": name });
    for (const [value, text, meaning] of [["NaN", "?", "unknown"], ["0", "0", "off"], ["1", "1", "on"]]) {
      const input = make("input", { type: "radio", name: `v${j}`, value, "aria-label": meaning });
      input.addEventListener("change", () => set(Number(value)));
      group.append(make("label", { title: meaning }, input, make("span", { text, "aria-hidden": "true" })));
    }
    return [group, (value) => { group.querySelector(`input[value="${value}"]`).checked = true; }];
  }

  dropDown(name, set) {
    const select = make("select", { class: "choice", "aria-label": name }, make("option", { value: "NaN", text: "not known" }),
      ...this.levels.map((text, value) => make("option", { value, text })));
    select.addEventListener("change", () => set(Number(select.value)));
    return [select, (value) => { select.value = String(value); }];
  }

  field(name, set, limits, read) {
    const input = make("input", { type: "number", class: "field", "aria-label": name, ...limits });
    input.addEventListener("change", () => {
      const value = input.value.trim() === "" ? NaN : read(Number(input.value));
      if (input.value.trim() !== "" && (!input.checkValidity() || unknown(value))) input.reportValidity();
      else set(value);
    });
    return [input, (value) => { if (document.activeElement !== input) input.value = unknown(value) ? "" : this.rawText(value); }];
  }

  rawText(value) { return this.kind === "count" ? String(value) : String(Number(this.invert(value).toPrecision(10))); }

  slider(name, set) {
    const [low, high] = this.ends, [field, showField] = this.field(name, set, { step: "any", placeholder: "?" }, (x) => this.apply(x));
    const range = make("input", { type: "range", min: low, max: high, step: "any", "aria-label": `${name}, slider` });
    range.addEventListener("input", () => set(this.apply(this.rounded(Number(range.value)))));
    const both = make("span", { class: "both" }, range, field);
    const show = (value, told) => {
      showField(value);
      both.classList.toggle("open", unknown(value));
      if (document.activeElement !== range || unknown(value)) range.value = unknown(value) ? (told ? told.mean : (low + high) / 2) : this.invert(value);
    };
    return [both, show];
  }
}

/* A number with four digits that count, without a sign where it is zero. */
function brief(x) { return String(Number(x.toPrecision(4)) || 0); }
