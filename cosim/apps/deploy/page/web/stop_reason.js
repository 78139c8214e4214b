// Why the guard, the plant or a part stopped the run: the sentence of `cosim run`, filled in from the memory.

const filledIn = (template, fields) => template.replace(/\{(\w+)\}/g, (_, name) => fields[name]());

const largestOf = (values) => values.reduce((best, value, k) => (value > values[best] ? k : best), 0);

// Of joint k, by the command at a place of the memory.
const requestedEffort = (simulation, k, path, place) => {
  const command = (name) => simulation.at(`${path}.${name}`)[place];
  const measured = (name) => simulation.at(`measured.${name}`)[k];
  const proportional = command("kp") * (command("position") - measured("position"));
  return proportional + command("kd") * (command("velocity") - measured("velocity")) + command("effort");
};

// What the controller of joint k requests, before the guard cuts it; 0 without a controller.
const commandedEffort = (simulation, k) => {
  const { controller } = simulation.facts.stop.joints[k];
  return controller ? requestedEffort(simulation, k, `controller_commands.${controller.name}`, controller.place) : 0;
};

// What the messages of limits say of joint k; read only as far as a message has it.
const figuresOf = (simulation, k, limit) => {
  const { step, stop } = simulation.facts;
  const { name, unit, effort_unit: effortUnit } = stop.joints[k];
  const value = (path) => simulation.at(path)[k];
  const shown = (number, of) => `${general(number)} ${of}`;
  const effort = () => requestedEffort(simulation, k, "command", k);
  const velocity = () => value("measured.velocity");
  const change = () => Math.abs(effort() - value("previous_request")) / step;
  return {
    joint: () => name,
    limit: () => limit.bounds[k],
    position: () => shown(value("measured.position"), unit),
    velocity: () => shown(velocity(), `${unit}/s`),
    effort: () => shown(effort(), effortUnit),
    commanded_effort: () => shown(commandedEffort(simulation, k), effortUnit),
    effort_rate: () => shown(change(), `${effortUnit}/s`),
    power: () => shown(Math.abs(effort() * velocity()), "W"),
    temperature: () => shown(value("temperature"), "degC"),
    unseen_motion: () => shown(value("standstill.unseen_motion"), unit),
    residual_energy: () => shown(value("residual_energy"), "J"),
    load_residual_energy: () => shown(value("load_residual_energy"), "J"),
    wall_energy: () => shown(value("haptic.energy"), "J"),
    shadow_effort: () => shown(value("shadow.effort"), effortUnit),
    shadow_drive: () => shown(value("shadow.drive"), effortUnit),
    shadow_position: () => shown(value("shadow.position"), unit),
    shadow_slip: () => shown(value("shadow.slip"), unit),
    tracking_error: () => shown(Math.abs(value("reference_position") - value("measured.position")), unit),
  };
};

const ofJoint = (simulation, k, text) => `joint '${simulation.facts.stop.joints[k].name}' ${text}`;

const guardFault = (simulation) => {
  const { limits, codes, stale } = simulation.facts.stop;
  const faults = simulation.at("guard_fault");
  const k = largestOf(faults);
  if (faults[k] === codes.not_finite) return notFinite(simulation, k);
  if (faults[k] === codes.stale) {
    const age = general(1e3 * simulation.at("age")[k]);
    const what = `has sent no feedback for ${age} ms, more than the ${stale[k]} ms of guard.stale`;
    return ofJoint(simulation, k, `${what}; check its power, its cable and its bus`);
  }
  const limit = limits[faults[k]];
  return ofJoint(simulation, k, filledIn(limit.reason, figuresOf(simulation, k, limit)));
};

const notFinite = (simulation, k) => {
  const { joints, overflowing, plausible } = simulation.facts.stop;
  const { unit, diverged } = joints[k];
  const [position, velocity] = ["position", "velocity"].map((name) => simulation.at(`measured.${name}`)[k]);
  const largest = Math.max(Math.abs(position), Math.abs(velocity)); // NaN if one is
  const at = `${general(position)} ${unit}, velocity ${general(velocity)} ${unit}/s`;
  const commanded = `is commanded an effort that is not finite (at ${at.replace("velocity ", "")})`;
  const what = largest < overflowing ? commanded : `is not finite (position ${at})`;
  return ofJoint(simulation, k, `${what}; ${largest < plausible ? "check its controller" : diverged}`);
};

const controlledStop = (simulation) => {
  const { limits, joints, begun_at: begunAt } = simulation.facts.stop;
  const k = largestOf(simulation.at("controlled_stop.first_guard_fault"));
  const limit = limits[simulation.at("controlled_stop.reason")[0]];
  const begun = simulation.at("bumpless_start")[begunAt];
  const what = filledIn(limit.controlled_stop, figuresOf(simulation, k, limit));
  const when = `at t = ${general(begun)} s, followed by a controlled stop of all joints`;
  return ofJoint(simulation, k, `${what} ${when}; change the trajectory or joints.${joints[k].name}.limits`);
};

const endlessEvents = (simulation) => {
  const { events } = simulation.facts.stop;
  const fired = simulation.at("plant.modes.fired");
  const often = events.filter((_, k) => fired[k] > 0.5 * Math.max(...fired));
  return [...new Set(often)].map((name) => `'${name}'`).join(" and ");
};

const farthestBond = (simulation) => {
  const { bonds } = simulation.facts.stop;
  const energy = simulation.at("coupling.energy");
  const k = largestOf(bonds.map(({ limit }, i) => Math.abs(energy[i]) / (limit ?? Infinity)));
  return { ...bonds[k], energy: energy[k] };
};

const firstNotFinite = (simulation) => {
  const values = simulation.at("coupling.values");
  const { outputs } = simulation.facts.stop;
  return outputs.find(({ at, size }) => !values.subarray(at, at + size).every(Number.isFinite)).name;
};

// A fault of the plant or of a part: its sentence is a template with these fields.
const otherFault = (simulation, template) =>
  filledIn(template, {
    refused: () => general(simulation.at("plant.steps.refused")[0]),
    endless: () => general(simulation.at("plant.modes.endless")[0]),
    events: () => endlessEvents(simulation),
    bond: () => farthestBond(simulation).name,
    bond_energy: () => general(farthestBond(simulation).energy, 4),
    bond_limit: () => general(farthestBond(simulation).limit),
    output: () => firstNotFinite(simulation),
  });

const stopReason = (simulation) => {
  const { codes, others, parts_from: partsFrom } = simulation.facts.stop;
  const fault = simulation.at("fault")[0];
  if (fault > partsFrom) return otherFault(simulation, others[fault]);
  if (simulation.at("guard_fault").includes(codes.not_finite)) return guardFault(simulation);
  if (others[fault]) return otherFault(simulation, others[fault]);
  const begun = simulation.at("controlled_stop.reason")[0];
  return begun && fault === begun ? controlledStop(simulation) : guardFault(simulation);
};

const stopSentence = (simulation) =>
  `stopped at tick ${simulation.tick} (t = ${general(simulation.time)} s): ${stopReason(simulation)}`;
