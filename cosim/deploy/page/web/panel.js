// The parameters: a slider and a number field for each, in groups as their names say.

// "arm.kp/elbow" → [group "arm kp", label "elbow"]; "arm.bandwidth" → ["arm", "bandwidth"]
const groupAndLabel = (name) => {
  const cut = name.indexOf("/");
  if (cut >= 0) return [name.slice(0, cut).replace(".", " "), name.slice(cut + 1)];
  const dot = name.lastIndexOf(".");
  return dot < 0 ? ["", name] : [name.slice(0, dot).replace(".", " "), name.slice(dot + 1)];
};

class Panel {
  // changed(name): after a parameter was set
  constructor(root, simulation, changed) {
    Object.assign(this, { simulation, changed, rows: new Map() });
    const groups = new Map();
    for (const parameter of simulation.facts.parameters) {
      const [group, label] = groupAndLabel(parameter.name);
      if (!groups.has(group)) groups.set(group, this.group(root, group, parameter));
      groups.get(group).append(this.row(parameter, label));
    }
  }

  group(root, name, { about }) {
    const made = element("details", { open: true }, element("summary", {}, name || "parameters"));
    if (about) made.append(element("p", { className: "about" }, about));
    root.append(made);
    return made;
  }

  row(parameter, label) {
    const { name, unit: unitText, least, greatest } = parameter;
    const scale = gainRange(parameter.value, least, greatest);
    const [low, high] = sliderEnds(scale);
    const inUnit = shownUnit(unitText);
    const spoken = `${name} ${inUnit}`.trim();
    const slider = element("input", { type: "range", min: low, max: high, step: "any", ariaLabel: spoken });
    const field = element("input", { type: "number", step: "any", inputMode: "decimal", ariaLabel: `${spoken}, as a number` });
    if (least !== null) field.min = least;
    if (greatest !== null) field.max = greatest;
    const line = element("div", { className: "parameter", title: this.hint(parameter, inUnit) });
    line.append(element("label", {}, label), slider, field, element("span", { className: "unit" }, inUnit));
    slider.addEventListener("input", () => this.set(name, sliderValue(scale, Number(slider.value))));
    slider.addEventListener("keydown", (event) => this.key(event, slider, scale, name));
    field.addEventListener("change", () => this.typed(name, field));
    this.rows.set(name, { slider, field, scale, line, parameter });
    this.show(name);
    return line;
  }

  hint({ name, value, least, greatest, about }, inUnit) {
    const bounds = least === null && greatest === null ? "" : `, from ${least ?? "−∞"} to ${greatest ?? "∞"}`;
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
    const { slider, field, scale, line, parameter } = this.rows.get(name);
    const value = this.simulation.get(name);
    slider.value = sliderPosition(scale, value);
    slider.setAttribute("aria-valuetext", `${general(value)} ${shownUnit(parameter.unit)}`.trim());
    const [low, high] = sliderEnds(scale);
    slider.style.setProperty("--filled", `${(100 * (Number(slider.value) - low)) / (high - low || 1)}%`);
    field.value = Number(value.toPrecision(9));
    field.setCustomValidity("");
    line.classList.toggle("changed", value !== parameter.value);
  }

  showAll() {
    for (const name of this.rows.keys()) this.show(name);
  }
}
