// Light and dark: the colours of the page, for what is drawn on canvases.

const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

// red, green, blue from 0 to 1, opaque
const numbersOf = (color) => [...color.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255), 1];

const currentLook = () => {
  const computed = (of) => {
    const probe = document.body.appendChild(document.createElement("i"));
    of(probe.style);
    const { color, fontFamily } = getComputedStyle(probe);
    probe.remove();
    return { color, fontFamily };
  };
  const known = new Map();
  // of a canvas, for a colour of CSS
  const color = (text) => {
    if (!known.has(text)) known.set(text, computed((style) => (style.color = text)).color);
    return known.get(text);
  };
  return {
    color,
    rule: color("var(--rule)"),
    faint: color("var(--faint)"),
    font: computed(() => {}).fontFamily,
    grid: numbersOf(color("var(--grid)")),
    shadow: [0, 0, 0, isDark() ? 0.4 : 0.16],
    spring: numbersOf(color("var(--spring)")),
  };
};

const toggleTheme = () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
};
