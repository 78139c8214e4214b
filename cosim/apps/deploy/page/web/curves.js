// Which curves belong in one chart: a signal, what was measured of it, its reference and its command.

const ROLES = [
  { prefix: "", label: "simulated", color: "--curve" },
  { prefix: "measured_", label: "measured", color: "--measured" },
  { prefix: "reference_", label: "reference", color: "--reference", dashed: true },
  { prefix: "command_", label: "command", color: "--reference", dashed: true },
];
const FIRST_CHARTS = 4;

const parted = (name) => {
  const cut = name.indexOf("/");
  return cut < 0 ? ["", name] : [name.slice(0, cut), name.slice(cut + 1)];
};

const shownUnit = (unitText) =>
  unitText === "1" ? "" : unitText.replaceAll("*", "·").replaceAll("^2", "²").replaceAll("^3", "³").replaceAll("degC", "°C");

// [{owner, quantity, unit, curves: [{label, color, dashed, of: columns}]}]; a difference has two columns
const chartsOf = (signals) => {
  const column = new Map(signals.map(({ name }, k) => [name, k]));
  const named = (owner, quantity) => column.get(owner ? `${owner}/${quantity}` : quantity);
  const found = new Map();
  for (const { name, unit: unitText } of signals) {
    const [owner, full] = parted(name);
    const { prefix } = ROLES.findLast((role) => full.startsWith(role.prefix));
    const quantity = full.slice(prefix.length);
    const key = `${owner}/${quantity}`;
    if (found.has(key)) continue;
    const present = ROLES.filter((role) => named(owner, role.prefix + quantity) !== undefined);
    const curves = present.map((role) => ({ ...role, of: [named(owner, role.prefix + quantity)] }));
    found.set(key, { owner, quantity, unit: shownUnit(unitText), curves });
    const [reference, value] = [`reference_${quantity}`, quantity].map((each) => named(owner, each));
    if (quantity === "position" && reference !== undefined && value !== undefined)
      found.set(`${owner}/error`, {
        owner,
        quantity: "tracking error",
        unit: shownUnit(unitText),
        curves: [{ label: "reference − position", color: "--error", of: [reference, value] }],
      });
  }
  return [...found.values()];
};

const valueOf = ({ of: [first, second] }, row) => (second === undefined ? row[first] : row[first] - row[second]);

// What is shown first: position and error of the first two that follow a reference, else the first few.
const firstCharts = (charts) => {
  const following = [...new Set(charts.filter(({ quantity }) => quantity === "tracking error").map(({ owner }) => owner))];
  const chosen = charts.filter(
    ({ owner, quantity }) => following.slice(0, 2).includes(owner) && ["position", "tracking error"].includes(quantity),
  );
  const moving = charts.filter(({ quantity }) => quantity === "position");
  return (chosen.length ? chosen : moving.length ? moving : charts).slice(0, FIRST_CHARTS);
};
