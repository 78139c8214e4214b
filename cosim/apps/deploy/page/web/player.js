// Takes ticks in step with the clock of the browser, as fast as the chosen speed asks and the machine allows.

const MOST_PER_FRAME = 14; // ms of ticks in a frame, so that the page stays responsive
const LONGEST_FRAME = 100; // ms; a tab in the background owes no more
const FEWEST_FRAMES = 30; // of a run that repeats, however fast it is, so that its motion is seen
const END_SHOWN = 300; // ms before a run repeats, but not longer than half of what the run took
const MEASURED = 500; // ms over which the real-time factor is measured
const CHUNK = 50; // ticks between two looks at the clock

class Player {
  // sampled(): after a sample is due; ended(): at the end of a run that repeats
  constructor(simulation, history, alarms, { duration, ended, stopped }) {
    Object.assign(this, { simulation, history, alarms, duration, ended, stopped });
    Object.assign(this, { running: false, speed: 1, repeat: true, owed: 0, factor: 0, cost: 0, window: [0, 0] });
    this.restart();
  }

  // after the simulation is at its start
  restart() {
    Object.assign(this, { owed: 0, begun: undefined, endShown: 0 });
    this.sample();
  }

  sample() {
    this.history.add(this.simulation.time, this.simulation.signals());
    this.alarms.note();
  }

  run() {
    this.running = !this.simulation.stopped;
    this.last = undefined;
  }

  pause() {
    this.running = false;
    this.factor = 0;
  }

  // Up to n ticks, with the samples that are due; returns how many were complete.
  take(n) {
    const { simulation, history } = this;
    let done = 0;
    while (done < n && !simulation.stopped) {
      const due = history.stride - (simulation.tick % history.stride);
      done += simulation.take(Math.min(due, n - done));
      if (simulation.tick % history.stride === 0 || simulation.stopped) this.sample();
    }
    if (simulation.stopped) this.halt();
    return done;
  }

  halt() {
    this.pause();
    this.stopped();
  }

  // now: of the frame [ms]
  frame(now) {
    if (!this.running) return;
    const elapsed = Math.min(now - (this.last ?? now), LONGEST_FRAME);
    this.last = now;
    if (now < this.endShown) {
      this.window[0] += elapsed; // no part of what is measured
      return;
    }
    if (this.left <= 0) this.ended();
    this.begun ??= now;
    const { step } = this.simulation.facts;
    const due = elapsed / (1e3 * step);
    this.owed += Math.min(this.speed * due, Math.max(due, this.most));
    const begun = performance.now();
    let taken = 0;
    while (this.running && this.owed >= 1 && this.left > 0 && performance.now() - begun < MOST_PER_FRAME)
      taken += this.takeOwed();
    if (taken > 0) this.cost = (1e3 * (performance.now() - begun)) / taken;
    // what this machine cannot keep up with is not made up for
    this.owed = this.owed >= 1 ? 0 : this.owed;
    if (this.left <= 0) this.endShown = now + Math.min(END_SHOWN, (now - this.begun) / 2);
    this.measure(now, taken * step);
  }

  get ticks() {
    return Math.round(this.duration / this.simulation.facts.step);
  }

  // ticks to the end of a run that repeats
  get left() {
    return this.repeat ? this.ticks - this.simulation.tick : Infinity;
  }

  // ticks of a frame beyond real time
  get most() {
    return this.repeat ? Math.max(this.ticks / FEWEST_FRAMES, 1) : Infinity;
  }

  // Some of the ticks that are owed; returns how many were complete.
  takeOwed() {
    const done = this.take(Math.min(Math.floor(this.owed), CHUNK, this.left));
    this.owed -= done;
    return done;
  }

  // the real-time factor: simulated over passed time
  measure(now, simulated) {
    const [since, before] = this.window;
    if (!since || now - since > 4 * MEASURED) this.window = [now, 0];
    else if (now - since < MEASURED) this.window = [since, before + simulated];
    else {
      this.factor = (1e3 * (before + simulated)) / (now - since);
      this.window = [now, 0];
    }
  }
}
