"""The guard in a rig: its section, how a run stops, and the alarms of limits that warn or saturate."""

import dataclasses
import json

import numpy as np
import pytest
from mcap.reader import make_reader

from cosim.cli.run_summary import guard_lines, structure_lines
from cosim.control.limits import BITS
from cosim.execution.native_engine import NativeEngine
from cosim.output.events import PAUSE, LimitAlarms, RunEvent
from cosim.rig.run.run import StoppedRun
from tests.control import guard_battery
from tests.kit.engines import armed, python_engine
from tests.kit.given import beside
from tests.kit.rigs import rig_in

GIVEN = beside(__file__)

# 1 kg on a rail, pushed with 10 N: v = 10 t, x = 5 t^2; `b` is left alone
RIG = GIVEN["rig"]
OWN = GIVEN["own"]


@pytest.fixture
def rig_of(tmp_path):
    def load(*overrides, interpret=False, text=RIG):
        return rig_in(tmp_path, text, *overrides, interpret=interpret, own=OWN)

    return load


def test_defaults(rig_of):
    """Feedback may be five steps old, but at least 20 ms; simulated joints' is never stale."""
    spec = rig_of().spec.guard
    assert (spec.actions, spec.soft_start, spec.stale) == (guard_battery.ACTIONS, 0.0, pytest.approx(0.020))
    assert rig_of("schedule.step=10 ms").spec.guard.stale == pytest.approx(0.050)
    rig = rig_of("guard.stale=7 ms")
    assert (rig.spec.guard.stale, rig.guard.stale.tolist()) == (pytest.approx(0.007), [np.inf, np.inf])


def test_a_joint_has_limits_and_actions_of_its_own(rig_of):
    limits = "joints.a.limits={rate: 5, temperature: 60 degC, power: 1 kW, tracking: 2 mm, actions: {power: warn}}"
    guard = rig_of(limits, "guard.actions={power: stop, rate: warn}").guard
    assert [guard.bounds[key].tolist() for key in ("rate", "temperature", "power", "tracking")] == [
        [5.0, np.inf], [60.0, np.inf], [1000.0, np.inf], [0.002, np.inf]
    ]  # fmt: skip
    assert guard.actions["power"].tolist() == ["warn", "stop"]
    assert guard.actions["rate"].tolist() == ["warn", "warn"]
    assert guard.actions["effort"].tolist() == ["saturate", "saturate"]


LIMITS = "joints.a.limits"


RUNS = {key: row["run"] for key, row in guard_battery.LIMITS.items() if "run" in row}


def overrides(run, limits):
    """Of the rig: the limits of joint a, and the settings of a run."""
    return [f"{LIMITS}={json.dumps(limits)}", *run.get("set", ())]


# overrides, tick in which it stops, reason
STOPS = {
    key: (overrides(run, run["stop"]["limits"]), run["stop"]["tick"], run["stop"]["reason"])
    for key, run in RUNS.items()
}
STOPS["stale"] = (
    [],
    0,
    "has sent no feedback for 12 ms, more than the 5 ms of guard.stale; check its power, its cable and its bus",
)


def engines(*rigs):
    """Compiled, and in Python for each rig."""
    yield NativeEngine(rigs[0].tick_model)
    for rig in rigs:
        yield armed(python_engine(rig))


# the guard of all engines is one function; what it has of measurements, each engine has on its own
IN_PYTHON = ("stale", "temperature", "tracking")


@pytest.mark.parametrize("kind", STOPS)
def test_a_limit_that_stops_ends_the_run_with_its_reason(rig_of, kind):
    settings, tick, sentence = STOPS[kind]
    rigs = [rig_of(*settings, interpret=interpret) for interpret in (False, True)[: 1 + (kind in IN_PYTHON)]]
    if kind == "stale":
        for rig in rigs:  # as if there was a real motor
            rig.tick_model.guard = dataclasses.replace(rig.guard, stale=np.array([0.005, np.inf]))
    found = []
    for engine in engines(*rigs) if kind in IN_PYTHON else [NativeEngine(rigs[0].tick_model)]:
        engine.view("temperature")[0] = 81.5 if kind == "temperature" else np.nan
        engine.view("age")[0] = 0.012
        rows, words = engine.run(100)
        assert words == f"stopped at tick {tick} (t = {tick / 1000:g} s): joint 'a' {sentence}"
        found.append(rows)
    for rows in found:
        np.testing.assert_allclose(rows, found[0], rtol=1e-12, atol=1e-14)


WITHIN = {key: run["within"] for key, run in RUNS.items() if "within" in run}


# limits that hold for one run are set together
GROUPS = [[kind for kind in WITHIN if "set" not in RUNS[kind] and kind != "stall"], ["stall"], ["frozen"]]


@pytest.mark.parametrize(
    ("kinds", "action"),
    [(GROUPS[0], "warn"), (GROUPS[0], "saturate"), (GROUPS[0], "stop"), *((g, "stop") for g in GROUPS[1:])],
)
def test_a_limit_that_is_not_exceeded_raises_no_alarm(rig_of, kinds, action):
    actions = {kind: action for kind in kinds if action in guard_battery.CHOICES[kind]}
    limits = {key: bound for kind in kinds for key, bound in WITHIN[kind].items()}
    run = rig_of(*overrides(RUNS[kinds[0]], {**limits, "actions": actions})).run()
    assert run.summary["outcome"] == "finished"
    assert (run.summary["guard"], run.events) == ({}, ())


def test_every_limit_has_a_run_within_it():
    assert {kind for kinds in GROUPS for kind in kinds} == WITHIN.keys()


def test_a_stopped_run_raises_with_the_reason(rig_of):
    with pytest.raises(StoppedRun, match=r"joint 'a' is 0\.010125 m from its reference"):
        rig_of(f"{LIMITS}={{tracking: 1 cm}}").run()


# overrides, message, in how many ticks of 101, the first time, the greatest request
ALARMS = {
    f"{key} {action}": (overrides(run, run[action]["limits"]), run[action]["alarm"], run[action]["ticks"])
    for key, run in RUNS.items()
    for action in ("warn", "saturate")
    if action in run
}


@pytest.mark.parametrize(
    ("case", "interpret"), [*((case, False) for case in ALARMS), ("position saturate", True), ("frozen warn", True)]
)
def test_a_limit_that_warns_or_saturates_raises_an_alarm(rig_of, case, interpret):
    settings, words, (ticks, first, most) = ALARMS[case]
    run = rig_of(*settings, interpret=interpret).run()
    kind, what = case.split()[0], f"a: {words}"
    assert run.fault == ""
    assert run.events == (RunEvent(pytest.approx(first), what, 0.0, 1, "warning"),)
    counts = {"what": what, "ticks": ticks, "occurrences": 1, "first_s": pytest.approx(first)}
    assert run.summary["guard"] == {"a": {kind: counts}}
    assert abs(run["a/command_effort"]).max() == pytest.approx(most)
    line = f"guard    {what}, in {ticks} tick{'s' * (ticks > 1)}, first at {first:g} s"
    assert guard_lines(run.summary) == [line]


def test_a_joint_that_is_too_fast_is_not_accelerated(rig_of):
    run = rig_of(f"{LIMITS}={{velocity: 0.305, actions: {{velocity: saturate}}}}").run()
    assert run["a/velocity"].max() == pytest.approx(0.31)
    assert set(run["a/command_effort"][:31]) == {10.0} and set(run["a/command_effort"][31:]) == {0.0}


def test_the_effort_keeps_the_limits_of_power_and_of_its_rate(rig_of):
    run = rig_of(f"{LIMITS}.power=4").run()
    power = run["a/command_effort"] * run["a/velocity"]
    assert power.max() <= 4.0 + 1e-12 and power[50:] == pytest.approx(4.0)
    run = rig_of(f"{LIMITS}.rate=1000").run()
    assert run["a/command_effort"][:12] == pytest.approx([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10])


def test_the_effort_limit_is_derated_by_temperature(rig_of):
    rig = rig_of(f"{LIMITS}={{effort: 8, temperature: 80, actions: {{temperature: saturate}}}}")
    for engine in engines(rig):
        requests = []
        for temperature in (20.0, 75.0, 79.0, 90.0, np.nan):
            engine.view("temperature")[0] = temperature
            rows, words = engine.run(1)
            assert words == ""
            row = rig.tick_model.row.unpack(rows[0])
            requests.append((row["request"][0], row["warned"][0]))
        assert [request for request, _ in requests] == pytest.approx([8.0, 4.0, 0.8, 0.0, 8.0])
        effort, both = BITS["effort"], BITS["effort"] + BITS["temperature"]
        assert [warned for _, warned in requests] == [effort, both, both, both, effort]


def test_a_commanded_position_is_clamped_to_the_tracking_limit(rig_of):
    limits = f"{LIMITS}={{tracking: 1 cm, actions: {{tracking: saturate}}}}"
    rest = [f"controllers.main.{key}" for key in ("aim=1", "kp=100", "push=0")]
    run = rig_of(limits, *rest).run()
    assert run["a/command_effort"] == pytest.approx(1.0)
    assert list(run.summary["guard"]["a"]) == ["tracking"]


def test_the_effort_limit_ramps_up_after_arming(rig_of):
    run = rig_of(f"{LIMITS}.effort=8", "guard.soft_start=50 ms").run()
    ramp = np.clip(run.t / 0.05, 0.0, 1.0)
    assert run["a/command_effort"] == pytest.approx(8.0 * ramp, abs=1e-12)
    assert run.summary["guard"]["a"]["effort"]["ticks"] == 101


def test_a_soft_start_begins_again_when_the_rig_is_armed_again(rig_of):
    rig = rig_of(f"{LIMITS}.effort=8", "guard.soft_start=50 ms", "controllers.main.push=5")
    for engine in engines(rig):
        before, _ = engine.run(100)
        engine.stop()
        engine.arm()
        engine.start_from_measured(0.0, 0)
        after, _ = engine.run(3)
        requests = [rig.tick_model.row.unpack(row)["request"][0] for row in (before[-1], *after)]
        assert requests == pytest.approx([5.0, 0.0, 0.16, 0.32], abs=1e-12)


def test_the_reference_of_an_active_fallback_is_the_position_it_holds(rig_of):
    """The trajectory is far ahead when the controller fails, in tick 20."""
    rest = "fails: 0.0195, push: 1, trajectory: {type: quintic, goal: 1, duration: 0.08}"
    text = RIG.replace("joints: [a]", f"joints: [a], fallback: {{type: pid, kp: 500, ki: 0, kd: 60}}, {rest}")
    with pytest.raises(StoppedRun, match="from its reference"):
        rig_of(f"{LIMITS}.tracking=10 cm", "controllers.main.fails=1000", text=text).run()
    run = rig_of(f"{LIMITS}.tracking=10 cm", text=text).run()
    assert run.summary["outcome"] == "finished"
    assert abs(run["a/reference_position"] - run["a/position"]).max() > 0.9


def test_alarms_are_recorded_and_counted(rig_of, tmp_path):
    rig = rig_of(f"{LIMITS}.effort=15", "controllers.main.swing=10", "schedule.duration=1 s")
    run = rig.run(record=tmp_path / "run.mcap")
    count = run.summary["guard"]["a"]["effort"]
    beyond = np.flatnonzero(abs(10.0 + 10.0 * np.sin(40.0 * run.t)) > 15.0)
    begins = beyond[np.diff(beyond, prepend=-1000) > PAUSE * 1000.0]
    assert (count["ticks"], count["occurrences"]) == (len(beyond), len(begins)) and len(begins) > 5
    assert [event.t for event in run.events] == pytest.approx(run.t[begins])
    assert guard_lines(run.summary)[0].endswith(f" ({len(begins)} occurrences), first at {run.t[begins[0]]:.6g} s")
    assert structure_lines(run.summary, {}) == []  # reported once

    with (tmp_path / "run.mcap").open("rb") as file:
        logs = [json.loads(message.data) for _, _, message in make_reader(file).iter_messages(topics=["/log"])]
    reported = [log["message"] for log in logs if log["level"] == 3]
    assert reported == ["a: effort cut to its limit of 15 N"] * len(begins)


def test_an_alarm_that_returns_soon_is_the_same_occurrence_also_across_blocks(rig_of):
    tick_model = rig_of(f"{LIMITS}={{effort: 5, velocity: 1, actions: {{velocity: warn}}}}").tick_model
    rows = np.zeros((1000, tick_model.row.size))
    rows[:, tick_model.row.index("t")[0]] = np.arange(1000) * 0.001
    mask = tick_model.row.index("warned")[0]
    for tick in (0, 50, 150, 251, 252, 600):
        rows[tick, mask] += BITS["effort"]
    rows[150:700, mask] += BITS["velocity"]
    whole = LimitAlarms(tick_model)
    found = whole(rows)
    assert sorted(found) == [
        (0.0, "a: effort cut to its limit of 5 N"),
        (0.150, "a: velocity beyond its limit of 1 m/s (warned)"),
        (0.251, "a: effort cut to its limit of 5 N"),
        (0.600, "a: effort cut to its limit of 5 N"),
    ]
    parts = LimitAlarms(tick_model)
    pieces = [alarm for block in np.split(rows, [1, 60, 151, 400]) for alarm in parts(block)]
    assert sorted(pieces) == sorted(found)
    assert parts.counts == whole.counts
    assert {kind: (count["ticks"], count["occurrences"]) for kind, count in whole.counts["a"].items()} == {
        "effort": (6, 3), "velocity": (550, 1)
    }  # fmt: skip
