// What the charts show: the signals at regular ticks, of the present run and the one before.

const SAMPLES = 1000; // across the span of a chart

class SignalHistory {
  constructor(count, step, span) {
    Object.assign(this, { count, span, stride: Math.max(Math.round(span / SAMPLES / step), 1) });
    this.restart();
  }

  restart() {
    this.before = this.times?.length > 1 ? { times: this.times, rows: this.rows } : this.before;
    Object.assign(this, { times: [], rows: [] });
  }

  add(time, signals) {
    this.times.push(time);
    this.rows.push(Float32Array.from(signals));
    if (this.times.length <= 1.2 * SAMPLES) return;
    this.times.splice(0, 0.2 * SAMPLES);
    this.rows.splice(0, 0.2 * SAMPLES);
  }
}
