// The parameters: a slider and a number field for each, in groups as their names say.

const SHOWN_DIGITS = 6;
const MOST_OPEN = 16; // rows; further groups are closed at first

// "arm.kp/elbow" → ["arm kp", "elbow"]; "arm.bandwidth" → ["arm", "bandwidth"]
const groupAndLabel = (name) => {
  const cut = name.includes("/") ? name.indexOf("/") : name.lastIndexOf(".");
  return [name.slice(0, Math.max(cut, 0)).replaceAll(".", " "), name.slice(cut + 1)];
};

// but for those without a value: bounds that the rig leaves out
const grouped = (parameters) => {
  const groups = new Map();
  for (const parameter of parameters.filter(({ value }) => value !== null)) {
    const [group, label] = groupAndLabel(parameter.name);
    groups.set(group, [...(groups.get(group) ?? []), { parameter, label }]);
  }
  return groups;
};

const rangeText = ([least, greatest] = [], inUnit) => {
  const end = (value, none) => (value == null ? none : general(value).replace("-", "−"));
  return `${end(least, "−∞")} to ${end(greatest, "∞")} ${inUnit}`.trim();
};

class Panel {
  // changed(name): after a parameter was set
  constructor(root, simulation, changed) {
    Object.assign(this, { simulation, changed, rows: new Map() });
    let shown = 0;
    for (const [name, members] of grouped(simulation.facts.parameters)) {
      root.append(this.group(name, members, shown < MOST_OPEN));
      shown += members.length;
    }
  }

  // of a quantity of several joints with one unit it is shown once
  group(name, members, open) {
    const units = new Set(members.map(({ parameter }) => parameter.shown_unit));
    const once = units.size === 1 && members[0].parameter.name.includes("/");
    const heads = new Set(members.map(({ parameter }) => parameter.about));
    const summary = element("summary", {}, name || "parameters");
    if (once) summary.append(" ", element("span", { className: "unit" }, [...units][0]));
    const made = element("details", { open, className: once ? "one-unit" : "" }, summary);
    if (heads.size === 1 && members[0].parameter.about) made.append(element("p", { className: "about" }, members[0].parameter.about));
    made.append(...members.map(({ parameter, label }) => this.row(parameter, label)));
    return made;
  }

  row(parameter, label) {
    const { name, shown_unit: inUnit, min: least, max: greatest, usual = [] } = parameter;
    const scale = gainRange(parameter.value, usual[0] ?? least, usual[1] ?? greatest);
    const [low, high] = sliderEnds(scale);
    const spoken = `${name} ${inUnit}`.trim();
    const slider = element("input", { type: "range", min: low, max: high, step: "any", label: spoken });
    const field = element("input", { type: "number", step: "any", inputMode: "decimal", label: `${spoken}, as a number` });
    if (least !== null) field.min = least;
    if (greatest !== null) field.max = greatest;
    const line = element("div", { className: "parameter", title: this.hint(parameter, inUnit) });
    const beyond = element("small", { hidden: true }, `beyond the joint's range of ${rangeText(usual, inUnit)}`);
    line.append(element("label", {}, label), slider, field, element("span", { className: "unit" }, inUnit), beyond);
    slider.addEventListener("input", () => this.set(name, sliderValue(scale, Number(slider.value))));
    slider.addEventListener("keydown", (event) => this.key(event, slider, scale, name));
    field.addEventListener("change", () => this.typed(name, field));
    this.rows.set(name, { slider, field, scale, line, parameter, beyond });
    this.show(name);
    return line;
  }

  hint({ name, value, min: least, max: greatest, about }, inUnit) {
    const bounds = least === null && greatest === null ? "" : `, ${boundsText(least, greatest)}`;
    return `${name}: ${about || "a parameter"}${bounds}; in the rig ${general(value)} ${inUnit}`.trim();
  }

  // Steps of the slider by keys are a part of its range: a step of "any" has none of its own.
  key(event, slider, scale, name) {
    const [low, high] = sliderEnds(scale);
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -20, PageUp: 20, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const moved = Number(slider.value) + (steps[event.key] * (high - low)) / SLIDER_STEPS;
    this.set(name, sliderValue(scale, Math.min(Math.max(moved, low), high)));
  }

  set(name, value) {
    this.simulation.set(name, value);
    this.show(name);
    this.changed(name);
  }

  typed(name, field) {
    try {
      if (field.value === "") throw new RangeError("write a number");
      this.set(name, Number(field.value));
      field.setCustomValidity("");
    } catch (error) {
      field.setCustomValidity(error.message);
      field.reportValidity();
    }
  }

  show(name) {
    if (!this.rows.has(name)) return; // a bound that the rig leaves out has no row
    const { slider, field, scale, line, parameter, beyond } = this.rows.get(name);
    const value = this.simulation.get(name);
    slider.value = sliderPosition(scale, value);
    slider.setAttribute("aria-valuetext", `${general(value)} ${parameter.shown_unit}`.trim());
    const [low, high] = sliderEnds(scale);
    slider.style.setProperty("--filled", `${(100 * (Number(slider.value) - low)) / (high - low || 1)}%`);
    field.value = Number(value.toPrecision(SHOWN_DIGITS));
    field.setCustomValidity("");
    const [least, greatest] = parameter.usual ?? [];
    beyond.hidden = value >= (least ?? -Infinity) && value <= (greatest ?? Infinity);
    line.classList.toggle("beyond", !beyond.hidden);
    line.classList.toggle("changed", value !== parameter.value);
  }

  showAll() {
    for (const name of this.rows.keys()) this.show(name);
  }
}
