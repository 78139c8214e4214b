"""A rig simulated by its page: the same numbers and words as in the engine, whatever moves the sliders."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import cosim.apps.deploy.page
from cosim import load_rig
from cosim.apps.dashboard.gains import gain_range
from cosim.control.limits import LIMIT_OF, LIMITS
from cosim.output.events import alarm_texts
from tests.kit.rig_page import RigPage, built_page, evaluated

UR5 = Path("rigs/ur5_sim.yaml")
PAGE = Path(cosim.apps.deploy.page.__file__).parent / "web"
GAIN = "arm.kp/elbow_joint"
ERROR = ("elbow_joint/reference_position", "elbow_joint/position")
TOLERANCE = 1e-10

PENDULUM = """\
name: pendulum
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints:
  hinge: {limits: LIMITS}
controllers:
  - {name: hold, type: pid, kp: 50, ki: 0, kd: 5, trajectory: {type: sine, amplitude: 0.5, frequency: 1 Hz, ramp: 0.5}}
guard: GUARD
schedule: {duration: 3 s}
"""


def pendulum(folder: Path, limits: str = "{}", guard: str = "{}", duration: str = "3 s") -> Path:
    path = folder / "pendulum.yaml"
    path.write_text(PENDULUM.replace("LIMITS", limits).replace("GUARD", guard).replace("3 s", duration))
    return path


@pytest.fixture(scope="module")
def ur5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_page(UR5, tmp_path_factory.mktemp("page"))


@pytest.fixture
def opened(browser) -> Iterator[Callable[..., RigPage]]:
    pages: list[RigPage] = []

    def open_page(file: Path, *size: int, **options) -> RigPage:
        pages.append(RigPage(browser, file, *size, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        assert page.errors == []
        assert page.requests == [page.address.partition("#")[0]]
        page.close()


@pytest.fixture(scope="module")
def kept(browser, ur5: Path) -> Iterator[RigPage]:
    page = RigPage(browser, ur5)
    yield page
    page.close()


@pytest.fixture
def page(kept: RigPage) -> Iterator[RigPage]:
    """The page of the UR5, at its start and with its own parameters."""
    kept.do("rig.pause(), rig.restore(), rig.reset()")
    yield kept
    assert kept.errors == []


class Engine:
    """A rig in the compiled engine; signals are from the last tick."""

    def __init__(self, path: Path) -> None:
        self.rig = load_rig(path, ["schedule.realtime=no"])
        self.engine = self.rig.engine()
        self.why = ""

    def take(self, ticks: int) -> dict[str, float]:
        rows, self.why = self.engine.run(ticks)
        values = self.rig.observe(self.engine.view("bumpless_start"), rows[-1:])[0]
        return dict(zip(self.rig.tick_model.signals.names, values, strict=True))

    def set(self, gain: int, value: float) -> None:
        """gain: number of the parameter."""
        self.engine.view("parameters")[gain] = value


def error(signals: dict[str, float]) -> float:
    reference, position = ERROR
    return signals[reference] - signals[position]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_draws_the_mechanism_and_charts_from_a_file_alone(opened, ur5, scheme) -> None:
    page = opened(ur5, color_scheme=scheme)
    page.do("rig.take(1000)")
    page.wait_for_frames()
    assert page.pixels("#view") > 500
    assert page.pixels(".chart canvas") > 20
    before = page.tab.locator("#view").screenshot()
    page.tab.locator("#view").press("ArrowLeft")
    page.wait_for_frames()
    assert page.tab.locator("#view").screenshot() != before


def test_a_slider_moved_by_keys_changes_the_tracking_error_as_in_the_engine(page) -> None:
    engine = Engine(UR5)
    page.do("rig.take(700)")
    engine.take(700)
    slider = page.slider(GAIN)
    slider.focus()
    for _ in range(3):
        slider.press("PageDown")
    gain = page.state["parameters"][GAIN]
    assert gain < 1000.0
    page.do("rig.take(800)")
    engine.set(2, gain)
    expected = engine.take(800)
    found = page.do("rig.signals()")
    assert abs(error(found) - error(expected)) < TOLERANCE
    for name, value in expected.items():
        assert abs(found[name] - value) < TOLERANCE * max(1.0, abs(value)), name
    untouched = Engine(UR5).take(1500)
    assert abs(error(found) - error(untouched)) > 1e-4


def test_a_pointer_and_the_field_move_a_slider_and_reset_keeps_it(page) -> None:
    own = page.state["parameters"]
    box = page.slider(GAIN).bounding_box()
    page.tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.tab.mouse.down()
    page.tab.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + box["height"] / 2, steps=4)
    page.tab.mouse.up()
    moved = page.state["parameters"][GAIN]
    assert moved < 0.5 * own[GAIN]
    assert float(page.field(GAIN).input_value()) == moved
    page.field("arm.kd/elbow_joint").fill("123.5")
    page.field("arm.kd/elbow_joint").press("Enter")
    page.do("rig.take(10)")
    page.press("Reset")
    state = page.state
    assert state["tick"] == 0
    assert state["parameters"] == own | {GAIN: moved, "arm.kd/elbow_joint": 123.5}
    page.press("The rig's own")
    assert page.state["parameters"] == own


def test_a_field_refuses_what_the_rig_could_not_have(page) -> None:
    page.field(GAIN).fill("-1")
    page.field(GAIN).press("Enter")
    assert page.state["parameters"][GAIN] == 2000.0
    message = page.field(GAIN).evaluate("field => field.validationMessage")
    assert message == f"{GAIN} is from 0 to ∞, not -1"


RAISED = """(() => { try { ACTION; return "nothing"; }
    catch (error) { return `${error.name}: ${error.message}`; } })()"""
NO_TICKS = {"1.5": "1.5", "NaN": "NaN", "": "undefined", "null": "null", "-1": "-1", "'3'": '"3"'}
NO_VALUES = {
    "null": "TypeError: arm.kp/elbow_joint is a number, not null",
    "true": "TypeError: arm.kp/elbow_joint is a number, not true",
    "'9'": 'TypeError: arm.kp/elbow_joint is a number, not "9"',
    "undefined": "TypeError: arm.kp/elbow_joint is a number, not undefined",
    "NaN": "RangeError: arm.kp/elbow_joint is a finite number, not NaN",
    "Infinity": "RangeError: arm.kp/elbow_joint is a finite number, not Infinity",
    "-1": "RangeError: arm.kp/elbow_joint is from 0 to ∞, not -1",
}


def test_scripts_that_pass_no_numbers_are_refused_and_change_nothing(page) -> None:
    before = page.state
    said = page.do(RAISED.replace("ACTION", "rig.set('arm.trajectory.duration', 0)"))
    assert said == "RangeError: arm.trajectory.duration is above 0, not 0"
    for given, said in NO_TICKS.items():
        raised = page.do(RAISED.replace("ACTION", f"rig.take({given})"))
        assert raised == f"RangeError: take has a whole number of ticks, 0 or more, not {said}"
    for given, said in NO_VALUES.items():
        assert page.do(RAISED.replace("ACTION", f"rig.set('{GAIN}', {given})")) == said
    assert page.state == before
    assert page.do("rig.take(2)") == 2
    assert page.tab.locator("[role=alert]").is_hidden()


def test_a_goal_beyond_the_joint_is_marked_and_a_long_name_is_shown_whole(page) -> None:
    goal = "arm.trajectory.goal/shoulder_lift_joint"
    marks = page.tab.locator(".parameter small")
    assert not any(mark.is_visible() for mark in marks.all())
    page.do(f"rig.set('{goal}', -8)")
    (mark,) = [mark.inner_text() for mark in marks.all() if mark.is_visible()]
    assert mark == "beyond the joint's range of −6.28319 to 6.28319 rad"
    cut = """[...document.querySelectorAll(".parameter label")].filter(each => each.scrollWidth > each.clientWidth)"""
    assert page.do(f"{cut}.length") == 0
    page.do(f"rig.set('{goal}', -1)")
    assert not any(mark.is_visible() for mark in marks.all())


def test_a_unit_stands_beside_the_group_of_a_quantity_and_else_beside_the_number(page) -> None:
    groups = [group.inner_text() for group in page.tab.locator("summary").all()]
    assert groups[:3] == ["arm trajectory goal rad", "arm trajectory", "arm kp N·m/rad"]
    row = page.tab.locator(".parameter", has=page.field("arm.trajectory.delay"))
    assert row.locator(".unit").inner_text() == "s"


SEEN = """new Promise(found => {
    const times = [], look = () => times.push(rig.state().time) < 120 ? requestAnimationFrame(look) : found(times);
    requestAnimationFrame(look); })"""


def test_the_motion_of_a_short_run_is_seen_at_the_fastest_speed(opened, tmp_path) -> None:
    page = opened(built_page(pendulum(tmp_path, duration="0.2 s"), tmp_path))
    page.tab.get_by_label("Speed").select_option("fastest")
    page.do("rig.run()")
    times = np.array(page.do(SEEN))
    assert np.mean((times > 0.0) & (times < 0.2 - 1e-9)) > 1 / 3
    assert (np.diff(times) < 0.0).any()  # it repeats
    page.do("rig.pause()")


def test_a_reference_that_is_changed_is_that_of_a_rig_with_the_changed_trajectory(page, tmp_path) -> None:
    page.do("rig.set('arm.trajectory.goal/elbow_joint', 1.25), rig.set('arm.trajectory.duration', 1.5), rig.take(1400)")
    text = UR5.read_text().replace("95 deg, -40 deg", "1.25 rad, -40 deg").replace("duration: 2 s", "duration: 1.5 s")
    changed = tmp_path / "changed.yaml"
    changed.write_text(text.replace("robots/ur5.urdf", str(UR5.parent.resolve() / "robots/ur5.urdf")))
    expected, found = Engine(changed).take(1400), page.do("rig.signals()")
    for name, value in expected.items():
        assert abs(found[name] - value) < TOLERANCE * max(1.0, abs(value)), name


STOPS = {
    "effort": ("{effort: 1 N*m}", "{actions: {effort: stop}}"),
    "commanded": ("{commanded_effort: 1 N*m}", "{}"),
    "power": ("{power: 0.01 W}", "{actions: {power: stop}}"),
    "immediate": ("{effort: 1 N*m}", "{actions: {effort: stop}, deceleration: 1e-3 rad/s^2}"),
    "stall": ("{effort: 0.01 N*m, stall: 0.2 s}", "{}"),
}


@pytest.mark.parametrize("what", STOPS)
def test_it_says_of_a_stop_by_the_guard_what_the_engine_says(opened, tmp_path, what) -> None:
    path = pendulum(tmp_path, *STOPS[what])
    engine = Engine(path)
    engine.take(3000)
    assert engine.why
    page = opened(built_page(path, tmp_path))
    page.do("rig.take(3000)")
    state = page.state
    assert state["stopped"]
    assert state["said"] == engine.why
    assert page.tab.locator("[role=alert]").inner_text().startswith(engine.why)
    page.tab.locator("[role=alert]").get_by_role("button", name="Reset").click()
    assert not page.state["stopped"]


def test_it_knows_every_figure_of_the_messages_of_limits() -> None:
    """Except for limits that only joints with real motors have."""
    source = (PAGE / "stop_reason.js").read_text()
    known = set(re.findall(r"^    (\w+): \(\) =>", source, re.M))
    texts = [row.reason + row.controlled_stop for row in LIMITS if row.key != "units"]
    assert set(re.findall(r"{(\w+)}", "".join(texts))) <= known


DIVERGED = {
    "velocity": ("{velocity: 0.1 rad/s}", "{actions: {velocity: stop}}"),
    "position": ("{lower: -0.2 rad, upper: 0.2 rad}", "{actions: {position: stop}}"),
}


@pytest.mark.parametrize("what", DIVERGED)
def test_where_the_engine_looks_for_a_cause_it_gives_the_usual_fix(opened, tmp_path, what) -> None:
    path = pendulum(tmp_path, *DIVERGED[what])
    engine = Engine(path)
    engine.take(3000)
    page = opened(built_page(path, tmp_path))
    page.do("rig.take(3000)")
    happened, _, fix = page.state["said"].partition("; ")
    assert happened == engine.why.partition("; ")[0]
    assert fix == LIMIT_OF[what].reason.partition("; ")[2].format(joint="hinge")


def test_limits_that_saturate_are_named_in_the_words_of_the_run(opened, tmp_path) -> None:
    path = pendulum(tmp_path, "{effort: 1 N*m}")
    page = opened(built_page(path, tmp_path))
    assert page.state["alarms"] == []
    page.do("rig.take(600)")
    said = list(alarm_texts(load_rig(path).tick_model).values())
    assert said == ["hinge: effort cut to its limit of 1 N*m"]
    assert page.state["alarms"] == said
    page.tab.get_by_text(said[0]).wait_for(timeout=5000)


def test_run_pause_step_and_speed(opened, ur5) -> None:
    page = opened(ur5)
    page.tab.keyboard.press(".")
    assert page.state["tick"] == 1
    page.tab.keyboard.press("]")
    assert page.state["speed"] == 2
    page.tab.keyboard.press(" ")
    while page.state["time"] < 0.3:
        page.tab.wait_for_timeout(50)
    page.press("❚❚ Pause")
    assert not page.state["running"]
    page.tab.keyboard.press("?")
    assert page.tab.locator("#help").is_visible()
    page.tab.keyboard.press("Escape")
    page.tab.keyboard.press("r")
    assert page.state["tick"] == 0


def test_it_fits_a_phone(opened, ur5) -> None:
    page = opened(ur5, 360, 740, has_touch=True, is_mobile=True)
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= 360
    page.slider(GAIN).tap()
    assert page.slider(GAIN).bounding_box()["height"] >= 30


def test_every_control_has_a_name(page) -> None:
    nameless = """[...document.querySelectorAll("button, select, input, canvas")].filter(each =>
        !(each.ariaLabel || each.textContent.trim() || each.closest("label"))).length"""
    assert page.tab.evaluate(nameless) == 0


# --- the scripts by themselves -----------------------------------------------------------------------


@pytest.fixture
def tab(browser) -> Iterator:
    page = browser.new_page()
    yield page
    page.close()


def test_numbers_are_written_as_python_writes_them(tab) -> None:
    drawn = np.random.default_rng(1).normal(size=400) * 10.0 ** np.random.default_rng(2).integers(-12, 12, 400)
    values = [*drawn.tolist(), 0.0, 1e5, 999999.5, 1e6, 1e-4, 9.99999e-5, 1000.125, 1000.375, -0.5, 1e300, 123456.5]
    found = evaluated(tab, ["general_format"], "values[0].map(value => general(value))", values)
    assert found == [f"{value:.6g}" for value in values]


@pytest.mark.parametrize(
    ("low", "high", "labels", "power"),
    [
        (-1.2e-5, 1.1e-5, ["−10", "−5", "0", "5", "10"], "×10⁻⁶"),
        (-3e-13, 4e-13, ["−200", "0", "200", "400"], "×10⁻¹⁵"),
        (-0.5, 1.5, ["−0.5", "0.0", "0.5", "1.0", "1.5"], ""),
        (1.00001, 1.00005, ["1.00001", "1.00002", "1.00003", "1.00004", "1.00005"], ""),
        (0.0, 3.1e7, ["0", "10", "20", "30"], "×10⁶"),
    ],
)
def test_labels_of_an_axis_are_short_and_differ(tab, low, high, labels, power) -> None:
    expression = """(() => { const power = powerOf(values[0], values[1]);
        const labels = ticksBetween(values[0], values[1], 5, power).map(({ label }) => label);
        return [labels, power ? raised(power) : ""]; })()"""
    assert evaluated(tab, ["chart"], expression, low, high) == [labels, power]


GAINS = [
    *itertools.product((0.0, 1e-2, 1.0, 4.0), (None, 0.0, 1e-15, 1e-3, -2.0), (None, 5.0, 1e4))
]  # value, lower, upper


def test_sliders_have_the_scale_of_the_dashboard(tab) -> None:
    scales = [gain_range(*gain) for gain in GAINS]
    positions = [np.linspace(*scale.ends, 7).tolist() for scale in scales]
    expression = """values[0].map((gain, k) => { const scale = gainRange(...gain);
        return [scale.low, scale.high, scale.logarithmic, values[1][k].map(at => sliderValue(scale, at)),
        sliderPosition(scale, gain[0])]; })"""
    found = evaluated(tab, ["gain_range"], expression, GAINS, positions)
    for (value, *_), scale, places, (low, high, logarithmic, values, position) in zip(
        GAINS, scales, positions, found, strict=True
    ):
        assert logarithmic is scale.logarithmic
        np.testing.assert_allclose([low, high], [scale.low, scale.high], rtol=1e-14)
        np.testing.assert_allclose(values, [scale.value(at) for at in places], rtol=1e-14)
        np.testing.assert_allclose(position, scale.position(value), rtol=1e-14)


PAIRS = [(x, y) for x in (-7.25, -2.5, -0.3, 0.0, 0.5, 1.5, 3.0, 1e9 + 0.5) for y in (-3.0, 0.7, 1.0, 2.0)]
OF_ONE = ("acos", "asin", "atan", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "expm1", "log1p", "sin", "sinh", "tanh")
POINTS = [-0.99, -0.5, -1e-3, 0.0, 1e-8, 0.3, 0.999]


OF_TWO = ("fmod", "remainder", "atan2", "hypot", "pow", "copysign")


def test_functions_of_numbers_are_those_of_c(tab) -> None:
    for name in OF_TWO:
        pairs = [(abs(x), y) if name == "pow" else (x, y) for x, y in PAIRS if not (name == "pow" and x == 0.0)]
        found = evaluated(tab, ["libm"], f"values[0].map(([x, y]) => LIBM.{name}(x, y))", pairs)
        np.testing.assert_allclose(found, [getattr(math, name)(x, y) for x, y in pairs], rtol=1e-15, err_msg=name)
    for name in OF_ONE:
        wide = [-6.0, -3.2, -2.4, -1.7, 1.2, 2.49, 2.51, 4.0, 8.0] if name.startswith("erf") else []
        found = evaluated(tab, ["libm"], f"values[0].map(x => LIBM.{name}(x))", [*POINTS, *wide])
        expected = [getattr(math, name)(x) for x in (*POINTS, *wide)]
        np.testing.assert_allclose(found, expected, rtol=2e-14, atol=1e-17, err_msg=name)


CUBE = """\
name: cube
mechanism:
  ground: {friction: 0.3}
  bodies: [{name: cube, parent: base, type: free, mass: 3 kg, inertia: [0.02, 0.02, 0.02]}]
  contacts: [{name: c, link: cube, box: [0.2, 0.2, 0.2], with: ground, stiffness: 1e5}]
joints: {cube: {initial: {position: [0, 0, 0.101, 0, 0, 0, 1], velocity: [1, 0, 0, 0, 0, 0]}}}
schedule: {step: 1 ms, duration: 1 s}
"""


def test_arrows_show_the_forces_of_contacts(opened, tmp_path: Path) -> None:
    """Of a cube in the air, that slides (red), and that lies (orange)."""
    (tmp_path / "cube.yaml").write_text(CUBE)
    page, seen = opened(built_page(tmp_path / "cube.yaml", tmp_path)), []
    for ticks, state in ((1, 0.0), (199, 2.0), (600, 1.0)):
        page.do("rig.take(values[0])", ticks)
        page.wait_for_frames()
        assert page.do("rig.signals()")["c/state"] == state
        seen.append(tuple(page.hues("#view", *of) for of in ((0, 12), (20, 35))))
    (air_red, air_orange), (slides_red, slides_orange), (lies_red, lies_orange) = seen
    assert air_red == air_orange == slides_orange == lies_red == 0
    assert slides_red > 50 and lies_orange > 50
