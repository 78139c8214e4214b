// The limits that warned or saturated a moment ago, in the words of `cosim run`.

const ALARM_SHOWN = 0.25; // s of simulated time after the tick

class Alarms {
  constructor(simulation) {
    Object.assign(this, { simulation, seen: new Map() });
  }

  // after a tick
  note() {
    const { simulation, seen } = this;
    const masks = simulation.at("warned");
    for (const { joint, bit, text } of simulation.facts.stop.alarms)
      if (Math.floor(masks[joint] / bit) % 2 === 1) seen.set(text, simulation.time);
  }

  clear() {
    this.seen.clear();
  }

  get present() {
    const since = this.simulation.time - ALARM_SHOWN;
    return [...this.seen].filter(([, time]) => time >= since).map(([text]) => text);
  }
}
