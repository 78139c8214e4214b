// Solids of edge or diameter 1 about the origin, as triangles: corners and normals, three numbers each.

const CYLINDER_SIDES = 32;
const BANDS = 14; // of a sphere, from pole to pole

const triangles = () => ({ corners: [], normals: [] });

// four corners in order, a normal for each
const addQuad = (solid, corners, normals) => {
  for (const k of [0, 1, 2, 0, 2, 3]) {
    solid.corners.push(...corners[k]);
    solid.normals.push(...normals[k]);
  }
};

const box = () => {
  const solid = triangles();
  for (const axis of [0, 1, 2])
    for (const sign of [-1, 1]) {
      const at = (u, v) => {
        const corner = [0, 0, 0];
        corner[axis] = sign / 2;
        corner[(axis + 1) % 3] = u / 2;
        corner[(axis + 2) % 3] = v / 2;
        return corner;
      };
      const normal = [0, 0, 0];
      normal[axis] = sign;
      addQuad(solid, [at(-1, -1), at(1, -1), at(1, 1), at(-1, 1)], Array(4).fill(normal));
    }
  return solid;
};

const onCircle = (k, sides) => [Math.cos((2 * Math.PI * k) / sides), Math.sin((2 * Math.PI * k) / sides)];

const cylinder = () => {
  const solid = triangles();
  for (let k = 0; k < CYLINDER_SIDES; k++) {
    const [[a, b], [c, d]] = [onCircle(k, CYLINDER_SIDES), onCircle(k + 1, CYLINDER_SIDES)];
    const rim = (x, y, z) => [x / 2, y / 2, z];
    const sides = [[a, b, 0], [c, d, 0], [c, d, 0], [a, b, 0]];
    addQuad(solid, [rim(a, b, -0.5), rim(c, d, -0.5), rim(c, d, 0.5), rim(a, b, 0.5)], sides);
    for (const z of [-0.5, 0.5]) {
      solid.corners.push(0, 0, z, ...rim(a, b, z), ...rim(c, d, z));
      for (let i = 0; i < 3; i++) solid.normals.push(0, 0, Math.sign(z));
    }
  }
  return solid;
};

// along z, its tip up
const cone = () => {
  const solid = triangles();
  for (let k = 0; k < CYLINDER_SIDES; k++) {
    const [[a, b], [c, d]] = [onCircle(k, CYLINDER_SIDES), onCircle(k + 1, CYLINDER_SIDES)];
    const [one, next] = [[a / 2, b / 2, -0.5], [c / 2, d / 2, -0.5]];
    solid.corners.push(...one, ...next, 0, 0, 0.5, 0, 0, -0.5, ...one, ...next);
    solid.normals.push(a, b, 0.5, c, d, 0.5, a + c, b + d, 1, 0, 0, -1, 0, 0, -1, 0, 0, -1);
  }
  return solid;
};

const ellipsoid = () => {
  const solid = triangles();
  const at = (band, k) => {
    const angle = Math.PI * (band / BANDS - 0.5);
    const [x, y] = onCircle(k, 2 * BANDS);
    return [x * Math.cos(angle), y * Math.cos(angle), Math.sin(angle)];
  };
  for (let band = 0; band < BANDS; band++)
    for (let k = 0; k < 2 * BANDS; k++) {
      const normals = [at(band, k), at(band, k + 1), at(band + 1, k + 1), at(band + 1, k)];
      addQuad(solid, normals.map((normal) => scaled(normal, 0.5)), normals);
    }
  return solid;
};

const SOLIDS = { box, cylinder, cone, ellipsoid };
