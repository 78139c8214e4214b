// The mechanism in 3D: its solids at the poses of its bodies, their shadow on the floor, and a grid.

const VERTEX_SHADER = `
attribute vec3 corner, normal;
uniform mat4 camera, pose;
uniform vec3 size;
varying vec3 facing, place;
void main() {
  vec4 at = pose * vec4(corner * size, 1.0);
  facing = mat3(pose) * (normal / size);
  place = at.xyz;
  gl_Position = camera * at;
}`;
const FRAGMENT_SHADER = `
precision mediump float;
uniform vec4 color;
uniform vec3 light, eye;
uniform float lit, fade;
uniform vec2 centre;
varying vec3 facing, place;
void main() {
  vec3 n = normalize(facing);
  vec3 toEye = normalize(eye - place);
  float sun = max(dot(n, light), 0.0), sky = 0.5 + 0.5 * n.z;
  float shine = pow(max(dot(n, normalize(light + toEye)), 0.0), 40.0);
  vec3 shaded = color.rgb * (0.34 + 0.3 * sky + 0.5 * sun) + 0.16 * shine;
  float far = fade > 0.0 ? 1.0 - smoothstep(0.35 * fade, fade, distance(place.xy, centre)) : 1.0;
  gl_FragColor = vec4(lit > 0.5 ? shaded : color.rgb, color.a * far);
}`;
const LIGHT = unit([0.35, -0.45, 0.9]);
const SPRING_WIDTH = 0.012; // over the extent of the mechanism
const GRID_REACH = 12; // cells on each side
const UNIT_SIZE = [1, 1, 1];
const SMALLEST_FRAME = 0.6; // over the extent of the mechanism
const FARTHEST_FRAME = 6; // times what is seen at the start

const diagonal = ([low, high]) => Math.hypot(...minus(high, low));

class View3d {
  // ahead: poses of the bodies at the start and along the motion
  constructor(canvas, scene, ahead) {
    Object.assign(this, { canvas, scene });
    const gl = canvas.getContext("webgl", { antialias: true, stencil: true, alpha: true });
    if (!gl) return; // the page says so and goes on with its charts
    this.gl = gl;
    this.program = this.linked();
    gl.useProgram(this.program);
    this.uniforms = new Map();
    this.buffers = Object.fromEntries(Object.entries(SOLIDS).map(([kind, solid]) => [kind, this.uploaded(solid())]));
    this.grid = this.uploaded(this.gridLines());
    this.shapes = scene.bodies.flatMap((body, k) => body.shapes.map((shape) => this.prepared(shape, k)));
    const { floor, ...home } = this.framed(ahead);
    Object.assign(this, { centre: home.target, floor });
    this.camera = new Camera(canvas, home, () => (this.moved = true));
  }

  get works() {
    return Boolean(this.gl);
  }

  prepared(shape, body) {
    return { body, solid: this.buffers[shape.kind], size: shape.size, color: shape.color, floor: shape.floor, local: placed(shape.position, shape.wxyz) };
  }

  // The middle, the size and the lowest point of what is shown: along the motion ahead, unless that leads far away.
  framed(ahead) {
    const start = this.boundsAt(ahead.slice(0, 1));
    const whole = this.boundsAt(ahead);
    const near = Math.max(diagonal(start), SMALLEST_FRAME * this.scene.extent);
    const [low, high] = diagonal(whole) < FARTHEST_FRAME * near ? whole : start;
    const target = low.map((x, i) => (x + high[i]) / 2);
    const extent = Math.max(diagonal([low, high]), SMALLEST_FRAME * this.scene.extent);
    return { target, extent, size: minus(high, low), floor: Math.min(low[2], this.scene.floor) };
  }

  // the corners of a box around all solids but the ground that is touched, at all of these poses
  boundsAt(ahead) {
    const [low, high] = [Array(3).fill(Infinity), Array(3).fill(-Infinity)];
    for (const poses of ahead)
      for (const { pose, size } of this.shapesAt(poses).filter((shape) => !shape.floor))
        for (let i = 0; i < 3; i++) {
          const half = (Math.abs(pose[i]) * size[0] + Math.abs(pose[4 + i]) * size[1] + Math.abs(pose[8 + i]) * size[2]) / 2;
          low[i] = Math.min(low[i], pose[12 + i] - half);
          high[i] = Math.max(high[i], pose[12 + i] + half);
        }
    return low[0] < Infinity ? [low, high] : [[0, 0, 0], [0, 0, 0]];
  }

  poseOf(poses, body) {
    return body ? matrixOfPose(poses, body - 1) : IDENTITY;
  }

  linked() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX_SHADER], [gl.FRAGMENT_SHADER, FRAGMENT_SHADER]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    return program;
  }

  uploaded({ corners, normals }) {
    const { gl } = this;
    const [cornerBuffer, normalBuffer] = [corners, normals].map((numbers) => {
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(numbers), gl.STATIC_DRAW);
      return buffer;
    });
    return { corner: cornerBuffer, normal: normalBuffer, count: corners.length / 3 };
  }

  // lines one cell apart, in pieces: long ones that begin behind the eye are not drawn everywhere
  gridLines() {
    const corners = [];
    for (let k = -GRID_REACH; k <= GRID_REACH; k++)
      for (let i = -GRID_REACH; i < GRID_REACH; i++) corners.push(k, i, 0, k, i + 1, 0, i, k, 0, i + 1, k, 0);
    return { corners, normals: corners.map((_, i) => (i % 3 === 2 ? 1 : 0)) };
  }

  // a round number of metres
  get cell() {
    const about = this.scene.extent / 3;
    const decade = 10 ** Math.floor(Math.log10(about));
    return decade * [1, 2, 5, 10].find((step) => step * decade >= about * 0.7);
  }

  set(name, ...values) {
    const { gl } = this;
    if (!this.uniforms.has(name)) this.uniforms.set(name, gl.getUniformLocation(this.program, name));
    const where = this.uniforms.get(name);
    if (values[0].length === 16) gl.uniformMatrix4fv(where, false, values[0]);
    else gl[`uniform${values.length}f`](where, ...values);
  }

  paint(solid, pose, size, mode = this.gl.TRIANGLES) {
    const { gl } = this;
    for (const name of ["corner", "normal"]) {
      const where = gl.getAttribLocation(this.program, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, solid[name]);
      gl.enableVertexAttribArray(where);
      gl.vertexAttribPointer(where, 3, gl.FLOAT, false, 0, 0);
    }
    this.set("pose", pose);
    this.set("size", ...size);
    gl.drawArrays(mode, 0, solid.count);
  }

  fitted() {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight].map((n) => Math.max(Math.round(n * scale), 1));
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    this.gl.viewport(0, 0, width, height);
  }

  // poses (bodies, 3, 4), signals of the tick, look: colours of the page
  draw(poses, signals, look) {
    if (!this.works) return;
    const { gl, camera } = this;
    this.fitted();
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.set("camera", camera.matrix);
    this.set("eye", ...camera.eye);
    this.set("light", ...LIGHT);
    this.set("centre", this.centre[0], this.centre[1]);
    const solids = [...this.shapesAt(poses), ...this.springsAt(poses)];
    this.drawFloor(solids, look);
    this.set("fade", 0);
    this.set("lit", 1);
    this.paintAll(solids, look);
    gl.clear(gl.DEPTH_BUFFER_BIT); // arrows begin inside of what touches, and are seen through it
    this.paintAll(this.forcesOf(signals), look);
    this.moved = false;
  }

  paintAll(solids, look) {
    for (const { solid, pose, size, color } of solids) {
      this.set("color", ...(color ?? look.spring));
      this.paint(solid, pose, size);
    }
  }

  shapesAt(poses) {
    return this.shapes.map((shape) => ({ ...shape, pose: product(this.poseOf(poses, shape.body), shape.local) }));
  }

  springsAt(poses) {
    const width = SPRING_WIDTH * this.scene.extent;
    return this.scene.springs.map((spring) => {
      const [start, end] = spring.map(([body, point]) => transformed(this.poseOf(poses, body), point));
      const length = Math.hypot(...minus(end, start));
      return { solid: this.buffers.cylinder, pose: between(start, end), size: [width, width, length || width] };
    });
  }

  // an arrow and a dot at each contact that touches
  forcesOf(signals) {
    const { extent, forces } = this.scene;
    return forces.contacts.flatMap(({ state, force, point }) => {
      const [vector, start] = [force, point].map((places) => places.map((k) => signals[k]));
      const size = Math.hypot(...vector);
      if (!(signals[state] > forces.open && size > 0 && size < Infinity)) return [];
      const color = signals[state] > forces.slides ? forces.sliding : forces.sticking;
      const length = Math.min(size * forces.length, forces.longest);
      const at = (part) => start.map((x, i) => x + (vector[i] / size) * part * length);
      const part = (kind, from, to, wide) => {
        const ends = [at(from), at(to)];
        return { solid: this.buffers[kind], pose: between(...ends), size: [wide * extent, wide * extent, Math.abs(to - from) * length], color };
      };
      const [shaft, head, dot] = forces.diameters;
      const middle = new Float32Array(IDENTITY);
      middle.set(start, 12);
      const round = { solid: this.buffers.ellipsoid, pose: middle, size: Array(3).fill(dot * extent), color };
      return [part("cylinder", 0, 1 - forces.head, shaft), part("cone", 1 - forces.head, 1, head), round];
    });
  }

  // the grid, and each spot of the floor once in shadow
  drawFloor(solids, look) {
    const { gl } = this;
    const { cell } = this;
    const middle = this.centre.map((x) => Math.round(x / cell) * cell);
    const at = new Float32Array([cell, 0, 0, 0, 0, cell, 0, 0, 0, 0, 1, 0, middle[0], middle[1], this.floor, 1]);
    gl.depthMask(false);
    this.set("lit", 0);
    this.set("fade", cell * GRID_REACH);
    this.set("color", ...look.grid);
    this.paint(this.grid, at, UNIT_SIZE, gl.LINES);
    this.set("color", ...look.shadow);
    gl.enable(gl.STENCIL_TEST);
    gl.stencilFunc(gl.EQUAL, 0, 1);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
    const flat = shadowOn(this.floor, LIGHT);
    for (const { solid, pose, size } of solids) this.paint(solid, product(flat, pose), size);
    gl.disable(gl.STENCIL_TEST);
    gl.depthMask(true);
  }
}
