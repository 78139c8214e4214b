// One chart: curves over time on a canvas, the previous run's faint behind them.

const MARGIN = { left: 52, right: 10, top: 8, bottom: 20 };
const BEFORE_OPACITY = 0.3;
const LABEL_GAP = 6;
const POWER_HEIGHT = 14; // of the power of ten above an axis

// At most `most` round numbers from low to high, each in as many digits as it takes to tell them apart, over 10^power.
const ticksBetween = (low, high, most, power = 0) => {
  const about = (high - low) / most;
  const decade = 10 ** Math.floor(Math.log10(about));
  const step = decade * [1, 2, 5, 10].find((factor) => factor * decade >= about);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  const decimals = Math.max(power - Math.floor(Math.log10(step) + 1e-9), 0);
  return Array.from({ length: Math.max(count, 0) }, (_, k) => (first + k) * step).map((value) => ({
    value,
    label: (value / 10 ** power).toFixed(decimals).replace("-", "−"),
  }));
};

// The power of ten, a multiple of 3, over which numbers up to these are short; 0 for those that are short by themselves.
const powerOf = (low, high) => {
  const decade = Math.floor(Math.log10(Math.max(Math.abs(low), Math.abs(high))));
  return decade >= -2 && decade < 5 ? 0 : 3 * Math.floor(decade / 3);
};

const raised = (power) => `×10${[...String(power)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit] ?? "⁻").join("")}`;

const shortNumber = (value, digits = 4) =>
  Number.isFinite(value) ? general(value, digits).replace("e-0", "e-").replace("e+0", "e").replaceAll("-", "−") : "–";

class Chart {
  // remove(): its button; changed(): it has to be drawn again
  constructor(content, history, { remove, changed }) {
    Object.assign(this, { content, history });
    const { owner, title, unit: unitText } = content;
    this.canvas = element("canvas", { role: "img", label: `${owner} ${title} over time` });
    this.readings = content.curves.map(({ label, color, dashed }) => {
      const reading = element("b", {});
      const key = element("i", { className: dashed ? "key dashed" : "key" });
      key.style.color = color;
      return { reading, item: element("span", { className: "reading" }, key, `${label} `, reading) };
    });
    const heading = element("strong", {}, `${owner} ${title}`.trim());
    const inUnit = element("span", { className: "unit" }, unitText);
    this.spread = element("span", { className: "reading", title: "root of the mean square over the chart" });
    const button = element("button", { className: "quiet", label: `Remove the chart ${owner} ${title}`, onclick: remove }, "✕");
    const head = element("figcaption", {}, heading, inUnit, button);
    const legend = element("div", { className: "legend" }, ...this.readings.map(({ item }) => item), this.spread);
    this.figure = element("figure", { className: "chart" }, head, this.canvas, legend);
    const point = (x) => {
      this.pointer = x;
      changed();
    };
    this.canvas.addEventListener("pointermove", (event) => point(event.offsetX));
    this.canvas.addEventListener("pointerleave", () => point(undefined));
  }

  // times from the first to the last that is shown
  get times() {
    const { times, span } = this.history;
    const last = Math.max(times.at(-1) ?? 0, span);
    return [last - span, last];
  }

  // lowest and highest value, with some air
  bounds([first, last]) {
    let [low, high] = [Infinity, -Infinity];
    for (const { times, rows } of [this.history, this.history.before ?? { times: [], rows: [] }])
      times.forEach((time, k) => {
        if (time < first || time > last) return;
        for (const curve of this.content.curves) {
          const value = valueOf(curve, rows[k]);
          if (value < low) low = value;
          if (value > high) high = value;
        }
      });
    if (!(low <= high)) return [-1, 1];
    const air = 0.06 * (high - low) || 0.05 * Math.abs(high) || 1;
    return [low - air, high + air];
  }

  draw(look) {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!width) return;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale))
      Object.assign(this.canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    const pen = this.canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const span = this.times;
    const bounds = this.bounds(span);
    pen.font = `11px ${look.font}`;
    const power = powerOf(...bounds);
    const labels = ticksBetween(...bounds, Math.max((height - MARGIN.top - MARGIN.bottom) / 28, 2), power);
    const widest = Math.max(0, ...labels.map(({ label }) => pen.measureText(label).width));
    const frame = {
      left: Math.max(MARGIN.left, Math.ceil(widest) + 2 * LABEL_GAP),
      right: width - MARGIN.right,
      top: MARGIN.top + (power ? POWER_HEIGHT : 0),
      bottom: height - MARGIN.bottom,
    };
    const x = (time) => frame.left + ((time - span[0]) / (span[1] - span[0])) * (frame.right - frame.left);
    const y = (value) => frame.bottom - ((value - bounds[0]) / (bounds[1] - bounds[0])) * (frame.bottom - frame.top);
    this.drawAxes(pen, look, frame, { span, labels, power, x, y });
    pen.save();
    pen.beginPath();
    pen.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    pen.clip();
    if (this.history.before) this.drawCurves(pen, look, this.history.before, { x, y }, BEFORE_OPACITY);
    this.drawCurves(pen, look, this.history, { x, y }, 1);
    pen.restore();
    this.read(pen, look, frame, span);
  }

  drawAxes(pen, look, frame, { span, labels, power, x, y }) {
    pen.strokeStyle = look.rule;
    pen.fillStyle = look.faint;
    pen.lineWidth = 1;
    pen.setLineDash([]);
    const line = (...points) => {
      pen.beginPath();
      points.forEach(([a, b]) => pen.lineTo(Math.round(a) + 0.5, Math.round(b) + 0.5));
      pen.stroke();
    };
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const { value, label } of labels) {
      line([frame.left, y(value)], [frame.right, y(value)]);
      pen.fillText(label, frame.left - LABEL_GAP, y(value));
    }
    if (power) pen.fillText(raised(power), frame.left - LABEL_GAP, POWER_HEIGHT / 2);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const { value: time, label } of ticksBetween(...span, Math.max((frame.right - frame.left) / 70, 2))) {
      line([x(time), frame.bottom], [x(time), frame.bottom + 3]);
      const half = pen.measureText(`${label} s`).width / 2;
      pen.fillText(`${label} s`, Math.min(x(time), frame.right + MARGIN.right - half), frame.bottom + 6);
    }
  }

  drawCurves(pen, look, { times, rows }, { x, y }, opacity) {
    pen.globalAlpha = opacity;
    pen.lineJoin = "round";
    for (const curve of this.content.curves) {
      pen.strokeStyle = look.color(curve.color);
      pen.lineWidth = curve.width;
      pen.setLineDash(curve.dashed ? [5, 4] : []);
      pen.beginPath();
      times.forEach((time, k) => pen.lineTo(x(time), y(valueOf(curve, rows[k]))));
      pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.setLineDash([]);
  }

  // the values at the pointer, else the last ones, beside the names of the curves
  read(pen, look, frame, span) {
    const { times, rows } = this.history;
    let k = times.length - 1;
    if (this.pointer >= frame.left && this.pointer <= frame.right) {
      const at = span[0] + ((this.pointer - frame.left) / (frame.right - frame.left)) * (span[1] - span[0]);
      const after = times.findIndex((time) => time >= at);
      k = after < 0 ? k : after;
      pen.strokeStyle = look.faint;
      pen.beginPath();
      pen.moveTo(this.pointer, frame.top);
      pen.lineTo(this.pointer, frame.bottom);
      pen.stroke();
    }
    this.content.curves.forEach((curve, i) => (this.readings[i].reading.textContent = k < 0 ? "–" : shortNumber(valueOf(curve, rows[k]))));
    if (this.content.title === TRACKING_ERROR) this.spread.textContent = this.spreads();
  }

  spreads() {
    const of = ({ rows }) => Math.sqrt(rows.reduce((sum, row) => sum + valueOf(this.content.curves[0], row) ** 2, 0) / rows.length);
    const before = this.history.before ? `, before ${shortNumber(of(this.history.before), 3)}` : "";
    return this.history.rows.length ? `rms ${shortNumber(of(this.history), 3)}${before}` : "";
  }
}
