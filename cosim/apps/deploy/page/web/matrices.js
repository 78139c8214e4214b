// 4 × 4 matrices in the order of WebGL, column by column, and vectors of three numbers.

const minus = (a, b) => a.map((x, i) => x - b[i]);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const scaled = (a, factor) => a.map((x) => factor * x);
const unit = (a) => scaled(a, 1 / (Math.hypot(...a) || 1));

const product = (a, b) => {
  const found = new Float32Array(16);
  for (let column = 0; column < 4; column++)
    for (let row = 0; row < 4; row++)
      for (let k = 0; k < 4; k++) found[4 * column + row] += a[4 * k + row] * b[4 * column + k];
  return found;
};

// row k of (bodies, 3, 4)
const matrixOfPose = (poses, k) => {
  const found = new Float32Array(16);
  for (let row = 0; row < 3; row++)
    for (let column = 0; column < 4; column++) found[4 * column + row] = poses[12 * k + 4 * row + column];
  found[15] = 1;
  return found;
};

const IDENTITY = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);

// of a position and a unit quaternion w, x, y, z
const placed = ([x, y, z], [w, i, j, k]) =>
  new Float32Array([
    1 - 2 * (j * j + k * k), 2 * (i * j + w * k), 2 * (i * k - w * j), 0,
    2 * (i * j - w * k), 1 - 2 * (i * i + k * k), 2 * (j * k + w * i), 0,
    2 * (i * k + w * j), 2 * (j * k - w * i), 1 - 2 * (i * i + j * j), 0,
    x, y, z, 1,
  ]);

const transformed = (matrix, [x, y, z]) =>
  [0, 1, 2].map((i) => matrix[i] * x + matrix[4 + i] * y + matrix[8 + i] * z + matrix[12 + i]);

// from one point to another along its z axis
const between = (start, end) => {
  const along = unit(minus(end, start));
  const across = unit(cross(Math.abs(along[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], along));
  const third = cross(along, across);
  const middle = start.map((x, i) => (x + end[i]) / 2);
  return new Float32Array([...across, 0, ...third, 0, ...along, 0, ...middle, 1]);
};

// view from `eye` to `target`, z up
const lookingAt = (eye, target) => {
  const back = unit(minus(eye, target));
  const right = unit(cross([0, 0, 1], back));
  const up = cross(back, right);
  const moved = [right, up, back].map((axis) => -dot(axis, eye));
  return new Float32Array([0, 1, 2].flatMap((i) => [right[i], up[i], back[i], 0]).concat(moved, 1));
};

const perspective = (angle, aspect, near, far) => {
  const f = 1 / Math.tan(angle / 2);
  const depth = near - far;
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / depth, -1, 0, 0, (2 * far * near) / depth, 0]);
};

// onto the plane z = height, along the direction of the light
const shadowOn = (height, [x, y, z]) =>
  new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, -x / z, -y / z, 0, 0, (height * x) / z, (height * y) / z, height, 1]);
