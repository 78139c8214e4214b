// The values of curves, and the charts that are shown first.

const FIRST_CHARTS = 4;
const TRACKING_ERROR = "tracking error";
const FIRST_TITLES = ["position", TRACKING_ERROR];

// of: the place of a signal in a row, or of two whose difference it is
const valueOf = ({ of: [first, second] }, row) => (second === undefined ? row[first] : row[first] - row[second]);

// Position and error of the first two that follow a reference, else the first few.
const firstCharts = (charts) => {
  const following = [...new Set(charts.filter(({ title }) => title === TRACKING_ERROR).map(({ owner }) => owner))];
  const chosen = charts.filter(({ owner, title }) => following.slice(0, 2).includes(owner) && FIRST_TITLES.includes(title));
  const moving = charts.filter(({ title }) => title === "position");
  return (chosen.length ? chosen : moving.length ? moving : charts).slice(0, FIRST_CHARTS);
};
