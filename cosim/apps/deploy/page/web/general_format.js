// Numbers as Python's %g writes them, so that sentences are the same in both.

// 0 to 9 digits after the first, halves to the even digit as C does it.
const significant = (x, digits) => {
  const shown = x.toExponential(digits - 1);
  const [mantissa] = x.toExponential(100).split("e");
  const rest = mantissa.replace(/[-.]/g, "").slice(digits);
  const last = Number(shown.split("e")[0].slice(-1));
  if (!/^50*$/.test(rest) || last % 2 === 0) return shown;
  const step = 10 ** (Number(shown.split("e")[1]) - digits + 1);
  return (x - Math.sign(x) * 0.75 * step).toExponential(digits - 1);
};

const withoutZeros = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

const general = (x, digits = 6) => {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (x === 0) return Object.is(x, -0) ? "-0" : "0";
  const shown = significant(x, digits);
  const [mantissa, exponent] = shown.split("e");
  const power = Number(exponent);
  if (power >= -4 && power < digits) return withoutZeros(Number(shown).toFixed(Math.max(digits - 1 - power, 0)));
  return `${withoutZeros(mantissa)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
};
