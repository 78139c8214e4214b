// Where the mechanism is seen from: an orbit about a point, by mouse, touch and keyboard.

const VIEW_ANGLE = 0.6; // rad, from the lower to the upper edge
const CLOSE = 1.75; // distance over what is shown
const STEEPEST = 1.55; // rad
const TURN_PER_PIXEL = 0.008;
const KEY_TURN = 0.12;

const FLAT = 0.3; // a thinner box is seen from its broad side

// {turn, tilt} from which a box of this size is seen well
const viewpointOf = (size) => {
  const thinnest = size.indexOf(Math.min(...size));
  if (size[thinnest] > FLAT * Math.max(...size)) return { turn: -0.9, tilt: 0.35 };
  return [{ turn: -0.35, tilt: 0.25 }, { turn: -1.25, tilt: 0.25 }, { turn: -1.3, tilt: 0.95 }][thinnest];
};

class Camera {
  // home: {target, extent, size}: the middle of what it shows at first, the length [m] of that, and of each of its edges
  constructor(canvas, home, changed) {
    Object.assign(this, { canvas, home, changed, fingers: new Map() });
    this.goHome();
    this.listen();
  }

  goHome() {
    const { target, extent, size } = this.home;
    Object.assign(this, { target, distance: CLOSE * extent, ...viewpointOf(size) });
    this.changed();
  }

  get eye() {
    const flat = Math.cos(this.tilt) * this.distance;
    const around = [Math.cos(this.turn) * flat, Math.sin(this.turn) * flat, Math.sin(this.tilt) * this.distance];
    return this.target.map((x, i) => x + around[i]);
  }

  get matrix() {
    const aspect = this.canvas.width / this.canvas.height;
    // on a narrow canvas the width has to show what the height does otherwise
    const angle = aspect < 1 ? 2 * Math.atan(Math.tan(VIEW_ANGLE / 2) / aspect) : VIEW_ANGLE;
    const lens = perspective(angle, aspect, this.distance / 50, this.distance * 50);
    return product(lens, lookingAt(this.eye, this.target));
  }

  orbit(right, up) {
    this.turn -= right;
    this.tilt = Math.min(Math.max(this.tilt + up, -STEEPEST), STEEPEST);
    this.changed();
  }

  zoom(factor) {
    const { extent } = this.home;
    this.distance = Math.min(Math.max(this.distance * factor, 0.05 * extent), 50 * extent);
    this.changed();
  }

  pan(right, up) {
    const scale = (this.distance * 2 * Math.tan(VIEW_ANGLE / 2)) / this.canvas.clientHeight;
    const view = lookingAt(this.eye, this.target);
    const moved = (i) => scale * (up * view[4 * i + 1] - right * view[4 * i]);
    this.target = this.target.map((x, i) => x + moved(i));
    this.changed();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.fingers.set(event.pointerId, event);
    });
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, (event) => this.fingers.delete(event.pointerId));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("dblclick", () => this.goHome());
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  drag(event) {
    const before = this.fingers.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    const other = [...this.fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
    if (other) {
      const apart = (finger) => Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY);
      this.zoom(apart(before) / (apart(event) || 1));
      this.pan(dx / 2, dy / 2);
    } else if (event.shiftKey || event.buttons === 2) this.pan(dx, dy);
    else this.orbit(TURN_PER_PIXEL * dx, TURN_PER_PIXEL * dy);
    this.fingers.set(event.pointerId, event);
  }

  wheel(event) {
    event.preventDefault();
    this.zoom(Math.exp(0.0012 * event.deltaY * (event.deltaMode ? 30 : 1)));
  }

  key(event) {
    const keys = {
      ArrowLeft: () => this.orbit(KEY_TURN, 0),
      ArrowRight: () => this.orbit(-KEY_TURN, 0),
      ArrowUp: () => this.orbit(0, KEY_TURN),
      ArrowDown: () => this.orbit(0, -KEY_TURN),
      "+": () => this.zoom(0.85),
      "=": () => this.zoom(0.85),
      "-": () => this.zoom(1 / 0.85),
      Home: () => this.goHome(),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }
}
