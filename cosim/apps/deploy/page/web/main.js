// The page: connects the simulation, its player and what shows them.

const SHORTCUTS = {
  " ": "run",
  ".": "step",
  r: "reset",
  g: "restore",
  l: "repeat",
  "[": "slower",
  "]": "faster",
  f: "fit",
  t: "theme",
  "?": "help",
};

const wholeNumber = (n) => {
  if (Number.isSafeInteger(n) && n >= 0) return n;
  throw new RangeError(`take has a whole number of ticks, 0 or more, not ${written(n)}`);
};

const SEEN_AHEAD = 30; // poses, to choose what the view shows
const LOOKING_AHEAD = 40; // ms, at most

class Page {
  constructor(simulation) {
    const { facts } = simulation;
    Object.assign(this, { simulation, charts: [], look: currentLook() });
    this.history = new SignalHistory(facts.signals.length, facts.step, Math.min(facts.duration, 10));
    this.alarms = new Alarms(simulation);
    this.player = new Player(simulation, this.history, this.alarms, {
      duration: facts.duration,
      ended: () => this.reset(),
      stopped: () => this.refresh(),
    });
    this.view = new View3d(byId("view"), facts.scene, simulation.ahead(facts.duration, SEEN_AHEAD, LOOKING_AHEAD));
    byId("no-view").hidden = this.view.works;
    byId("scene").hidden = !facts.scene.bodies.some((body) => body.shapes.length);
    this.panel = new Panel(byId("parameters"), simulation, () => (this.changed = true));
    byId("panel").hidden = !facts.parameters.length && !facts.notes.length;
    this.offerCharts(facts.charts);
    this.actions = this.listActions();
    this.listen();
    this.refresh();
  }

  listActions() {
    const { player, simulation, panel } = this;
    const pace = byId("speed");
    const choose = (move) => {
      pace.selectedIndex = Math.min(Math.max(pace.selectedIndex + move, 0), pace.length - 1);
      player.speed = Number(pace.value);
    };
    return {
      run: () => (player.running ? player.pause() : player.run()),
      step: () => {
        player.pause();
        player.take(1);
      },
      reset: () => this.reset(),
      restore: () => {
        simulation.restoreParameters();
        panel.showAll();
      },
      repeat: () => (player.repeat = byId("repeat").checked = !player.repeat),
      slower: () => choose(-1),
      faster: () => choose(1),
      fit: () => this.view.camera?.goHome(),
      theme: () => {
        toggleTheme();
        this.look = currentLook();
      },
      help: () => (byId("help").open ? byId("help").close() : byId("help").showModal()),
    };
  }

  listen() {
    for (const button of document.querySelectorAll("[data-action]"))
      button.addEventListener("click", () => this.act(button.dataset.action));
    byId("repeat").addEventListener("change", (event) => (this.player.repeat = event.target.checked));
    byId("speed").addEventListener("change", (event) => (this.player.speed = Number(event.target.value)));
    addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.act("theme-changed"));
    addEventListener("resize", () => (this.changed = true));
  }

  key(event) {
    const typing = event.target.matches("input[type=number], select, dialog *");
    const pressing = event.key === " " && event.target.matches("button, summary, input");
    if (typing || pressing || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = SHORTCUTS[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    this.act(action);
  }

  act(action) {
    this.actions[action]?.();
    this.look = currentLook();
    this.refresh();
  }

  // To the start with the parameters as they are; a run that was stopped goes on from there when it is started.
  reset() {
    this.simulation.reset();
    this.history.restart();
    this.alarms.clear();
    this.player.restart();
    this.refresh();
  }

  offerCharts(charts) {
    const picker = byId("add-chart");
    const groups = new Map();
    charts.forEach((content, k) => {
      if (!groups.has(content.owner)) groups.set(content.owner, element("optgroup", { label: content.owner || "signals" }));
      groups.get(content.owner).append(element("option", { value: k }, content.title));
    });
    picker.append(...groups.values());
    picker.addEventListener("change", () => {
      this.addChart(charts[Number(picker.value)]);
      picker.selectedIndex = 0;
    });
    for (const content of firstCharts(charts)) this.addChart(content);
  }

  addChart(content) {
    const remove = () => {
      chart.figure.remove();
      this.charts = this.charts.filter((other) => other !== chart);
    };
    const chart = new Chart(content, this.history, { remove, changed: () => (this.changed = true) });
    this.charts.push(chart);
    byId("charts").append(chart.figure);
    this.changed = true;
  }

  frame(now) {
    const { player, simulation, view } = this;
    const before = simulation.tick;
    player.frame(now);
    if (this.changed || view.moved || before !== simulation.tick) this.draw();
    requestAnimationFrame((next) => this.frame(next));
  }

  draw() {
    this.changed = false;
    this.view.draw(this.simulation.poses(), this.simulation.signals(), this.look);
    for (const chart of this.charts) chart.draw(this.look);
    byId("alarms").textContent = this.alarms.present.join("\n");
    this.showTime();
  }

  showTime() {
    const { player, simulation } = this;
    byId("time").textContent = `${simulation.time.toFixed(2)} s`;
    byId("factor").textContent = player.running && player.factor ? `${Number(player.factor.toPrecision(3))} × real time` : "";
    byId("cost").textContent = player.cost ? `${Number(player.cost.toPrecision(3))} µs a tick` : "";
  }

  // after anything but a tick
  refresh() {
    this.changed = true;
    const { player, simulation } = this;
    const state = simulation.stopped ? "stopped" : player.running ? "running" : "paused";
    document.body.dataset.state = state;
    byId("state").textContent = state;
    byId("run").textContent = player.running ? "❚❚ Pause" : "▶ Run";
    byId("run").disabled = byId("step").disabled = simulation.stopped;
    byId("said").hidden = !simulation.stopped;
    byId("said-text").textContent = simulation.stopped ? stopSentence(simulation) : "";
    this.showTime();
  }

  // For other pages and for tests; described in the guide about pages.
  get interface() {
    const { simulation, player, panel } = this;
    const { facts } = simulation;
    const refreshing = (action) => (...values) => {
      const result = action(...values);
      this.refresh();
      return result;
    };
    return Object.freeze({
      facts,
      state: () => ({
        tick: simulation.tick,
        time: simulation.time,
        running: player.running,
        speed: player.speed,
        stopped: simulation.stopped,
        alarms: this.alarms.present,
        said: simulation.stopped ? stopSentence(simulation) : "",
        parameters: Object.fromEntries(facts.parameters.map(({ name }) => [name, simulation.get(name)])),
      }),
      signals: () => Object.fromEntries([...simulation.signals()].map((value, k) => [facts.signals[k].name, value])),
      poses: () => Array.from(simulation.poses()),
      set: refreshing((name, value) => panel.set(name, value)),
      take: refreshing((n) => player.take(wholeNumber(n))),
      run: refreshing(() => player.run()),
      pause: refreshing(() => player.pause()),
      reset: refreshing(() => this.reset()),
      restore: refreshing(() => this.actions.restore()),
    });
  }
}

const start = async () => {
  const facts = await (await unpacked("facts")).json();
  const simulation = await Simulation.load(facts, await (await unpacked("module")).arrayBuffer());
  const page = new Page(simulation);
  window.rig = page.interface;
  requestAnimationFrame((now) => {
    page.frame(now);
    document.body.dataset.drawn = "";
  });
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches && !location.hash.includes("paused")) page.act("run");
};

start().catch(refused);
