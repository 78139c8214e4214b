// The mathematics of C that a module may import. JavaScript has most of it; what differs is written out.

// C rounds halves away from zero, JavaScript up.
const roundedAway = (x) => {
  const whole = Math.trunc(x);
  return Math.abs(x - whole) >= 0.5 ? whole + Math.sign(x) : whole;
};

const roundedToEven = (x) => {
  const near = roundedAway(x);
  return Math.abs(x - Math.trunc(x)) === 0.5 && near % 2 !== 0 ? near - Math.sign(x) : near;
};

// x − n y with n the whole number nearest to x / y, to an even one between two; exact, as fmod is.
const nearestRemainder = (x, y) => {
  const divisor = Math.abs(y);
  if (!Number.isFinite(divisor)) return divisor === Infinity && Number.isFinite(x) ? x : NaN;
  const rest = Math.abs(x % (2 * divisor));
  const below = rest > divisor / 2 ? rest - divisor : rest;
  const found = rest > divisor / 2 && below >= divisor / 2 ? below - divisor : below;
  return x < 0 ? -found : found;
};

const ignoringNaN = (choose) => (x, y) => (Number.isNaN(x) ? y : Number.isNaN(y) ? x : choose(x, y));

// Of C: 1 to any power and −1 to an infinite one are 1.
const power = (x, y) => (x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y);

// erf by its series exp(−x²) Σ 2ⁿ x²ⁿ⁺¹ / (2n + 1)!!, whose terms have one sign (Abramowitz and Stegun, 7.1.6).
const erfOfSmall = (x) => {
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
};

const FRACTION_TERMS = 200; // enough from FRACTION_FROM on
const FRACTION_FROM = 1.5; // below, 1 − erf is as exact

// erfc by its continued fraction, from its last term on (Abramowitz and Stegun, 7.1.14).
const erfcOfLarge = (x) => {
  let fraction = x;
  for (let n = FRACTION_TERMS; n > 0; n--) fraction = x + n / 2 / fraction;
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / fraction;
};

const SERIES_BELOW = 2.5;
const errorFunction = (x) =>
  Math.abs(x) < SERIES_BELOW ? erfOfSmall(x) : Math.sign(x) * (1 - erfcOfLarge(Math.abs(x)));
const complement = (x) => (x < FRACTION_FROM ? 1 - errorFunction(x) : erfcOfLarge(x));

const LIBM = {
  acos: Math.acos,
  acosh: Math.acosh,
  asin: Math.asin,
  asinh: Math.asinh,
  atan: Math.atan,
  atan2: Math.atan2,
  atanh: Math.atanh,
  cbrt: Math.cbrt,
  ceil: Math.ceil,
  copysign: (x, y) => (y < 0 || Object.is(y, -0) ? -Math.abs(x) : Math.abs(x)),
  cos: Math.cos,
  cosh: Math.cosh,
  erf: errorFunction,
  erfc: complement,
  exp: Math.exp,
  exp2: (x) => 2 ** x,
  expm1: Math.expm1,
  fabs: Math.abs,
  floor: Math.floor,
  fmax: ignoringNaN(Math.max),
  fmin: ignoringNaN(Math.min),
  fmod: (x, y) => x % y,
  hypot: Math.hypot,
  log: Math.log,
  log10: Math.log10,
  log1p: Math.log1p,
  log2: Math.log2,
  nearbyint: roundedToEven,
  pow: power,
  remainder: nearestRemainder,
  rint: roundedToEven,
  round: roundedAway,
  sin: Math.sin,
  sinh: Math.sinh,
  sqrt: Math.sqrt,
  tan: Math.tan,
  tanh: Math.tanh,
  trunc: Math.trunc,
};
