// The scale of a slider: linear, or logarithmic over several decades. The rules are the same as in `cosim dash`.

const DECADES = 2; // on each side of a value without a bound there
const WIDE = 2; // decades of a range from which on its scale is logarithmic
const SLIDER_STEPS = 400;
const SLIDER_DIGITS = 3;
const SMALLEST = 1e-15; // what is above 0 begins here, as in rig files

const range = (low, high, logarithmic) => ({ low, high, logarithmic });

const gainRange = (value, least, greatest) => {
  const lower = least ?? -Infinity;
  const upper = greatest ?? Infinity;
  if (lower < 0) {
    const reach = 10 * Math.abs(value) || 1;
    return range(Math.max(lower, -reach), Math.min(upper, reach), false);
  }
  if (value <= 0) return range(lower, Number.isFinite(upper) ? upper : lower + 1, false);
  const decade = Math.floor(Math.log10(value));
  const low = lower > SMALLEST ? lower : Number(`1e${decade - DECADES + 1}`);
  const high = Number.isFinite(upper) ? upper : Number(`1e${decade + DECADES}`);
  if (Number.isFinite(upper) && Math.log10(upper / value) < WIDE && lower <= SMALLEST) return range(lower, upper, false);
  return high > low && Math.log10(high / low) >= WIDE ? range(low, high, true) : range(lower, high, false);
};

const sliderEnds = ({ low, high, logarithmic }) => (logarithmic ? [Math.log10(low), Math.log10(high)] : [low, high]);

// of the slider, at its end for a value beyond
const sliderPosition = (scale, value) => {
  const within = Math.min(Math.max(value, scale.low), scale.high);
  return scale.logarithmic ? Math.log10(within) : within;
};

const sliderValue = (scale, position) => {
  const [low, high] = sliderEnds(scale);
  if (position <= low) return scale.low;
  if (position >= high) return scale.high;
  const value = Number((scale.logarithmic ? 10 ** position : position).toPrecision(SLIDER_DIGITS));
  return Math.min(Math.max(value, scale.low), scale.high);
};
