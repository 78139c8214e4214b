// Light and dark: the colours of the page, for what is drawn on canvases.

const CURVE_COLORS = ["--curve", "--measured", "--reference", "--error"];

const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

// red, green, blue from 0 to 1, opaque
const numbersOf = (color) => [...color.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255), 1];

const currentLook = () => {
  const probe = document.body.appendChild(document.createElement("i"));
  const color = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const look = {
    ...Object.fromEntries(CURVE_COLORS.map((name) => [name, color(name)])),
    rule: color("--rule"),
    faint: color("--faint"),
    font: getComputedStyle(probe).fontFamily,
    grid: numbersOf(color("--grid")),
    shadow: [0, 0, 0, isDark() ? 0.4 : 0.16],
    spring: numbersOf(color("--reference")),
  };
  probe.remove();
  return look;
};

const toggleTheme = () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
};
