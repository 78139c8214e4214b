// The rig: its module and the memory that its ticks work on. Everything here is numbers, nothing is drawn.

// As in a script: "9", null, 1.5.
const written = (value) => (typeof value === "string" ? JSON.stringify(value) : String(value));

// a bound "above 0" is the next number
const boundsText = (least, greatest) => {
  if (least !== SMALLEST) return `from ${least ?? "−∞"} to ${greatest ?? "∞"}`;
  return greatest === null ? "above 0" : `above 0 and up to ${greatest}`;
};

class Simulation {
  // facts: what is known of the rig; exports: of its module
  constructor(facts, exports) {
    this.facts = facts;
    this.code = (name) => exports[`${facts.name}_${name}`];
    const sizes = [facts.memory, facts.signals.length, 12 * (facts.scene.bodies.length - 1)];
    const first = Math.ceil(exports.__heap_base.value / 16) * 16;
    const starts = [first, first + 8 * sizes[0], first + 8 * (sizes[0] + sizes[1])];
    const missing = starts[2] + 8 * sizes[2] - exports.memory.buffer.byteLength;
    if (missing > 0) exports.memory.grow(Math.ceil(missing / 65536));
    const [memory, signals, poses] = starts.map((at, k) => new Float64Array(exports.memory.buffer, at, sizes[k]));
    Object.assign(this, { starts, memory, signalValues: signals, poseValues: poses });
    this.parameters = new Map(facts.parameters.map((parameter) => [parameter.name, parameter]));
    this.places = new Map(Object.entries(facts.places));
    this.restart();
  }

  static async load(facts, bytes) {
    const { instance } = await WebAssembly.instantiate(bytes, { env: LIBM });
    return new Simulation(facts, instance.exports);
  }

  // Poses at the start and along the run, as far as they are found within `most` ms; then back at the start.
  ahead(duration, count, most) {
    const end = performance.now() + most;
    const stride = Math.max(Math.round(duration / this.facts.step / count), 1);
    const found = [Array.from(this.poses())];
    while (found.length < count && performance.now() < end && this.take(stride) === stride) found.push(Array.from(this.poses()));
    this.restart();
    return found;
  }

  // To the start, with the parameters as they are.
  reset() {
    const kept = this.facts.parameters.map((parameter) => this.memory[parameter.place]);
    this.restart();
    this.facts.parameters.forEach((parameter, k) => (this.memory[parameter.place] = kept[k]));
  }

  restart() {
    this.code("reset")(this.starts[0]);
    this.tick = 0;
    this.stopped = false;
  }

  // Up to n ticks; returns how many were complete. After a stop `memory` belongs to the tick that was not.
  take(n) {
    if (this.stopped) return 0;
    const done = this.code("ticks")(this.starts[0], BigInt(this.tick), n);
    this.tick += done;
    this.stopped = done < n;
    return done;
  }

  get time() {
    return this.tick * this.facts.step;
  }

  // Of the last tick, in the order of facts.signals; the same array each time.
  signals() {
    this.code("signals")(this.starts[0], this.starts[1]);
    return this.signalValues;
  }

  // (bodies, 3, 4), row by row; the same array each time.
  poses() {
    this.code("poses")(this.starts[0], this.starts[2]);
    return this.poseValues;
  }

  // The numbers at a place of the memory, such as "measured.position".
  at(path) {
    const { at, shape } = this.places.get(path);
    return this.memory.subarray(at, at + shape.reduce((size, n) => size * n, 1));
  }

  get(name) {
    return this.memory[this.parameterNamed(name).place];
  }

  // Raises TypeError for what is no number, RangeError beyond the bounds of the parameter.
  set(name, value) {
    const { place, min: least, max: greatest } = this.parameterNamed(name);
    if (typeof value !== "number") throw new TypeError(`${name} is a number, not ${written(value)}`);
    if (!Number.isFinite(value)) throw new RangeError(`${name} is a finite number, not ${value}`);
    if (!(value >= (least ?? -Infinity) && value <= (greatest ?? Infinity)))
      throw new RangeError(`${name} is ${boundsText(least, greatest)}, not ${value}`);
    this.memory[place] = value;
  }

  parameterNamed(name) {
    const parameter = this.parameters.get(name);
    if (!parameter) throw new RangeError(`there is no parameter '${name}'`);
    return parameter;
  }

  restoreParameters() {
    for (const { place, value } of this.facts.parameters) this.memory[place] = value ?? Infinity;
  }
}
