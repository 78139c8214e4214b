"""Fallbacks of failed controllers: start, initial state, duration and report."""

import numpy as np
import pytest

from cosim.cli.run_summary import print_summary
from cosim.execution.native_engine import NativeEngine
from cosim.execution.scheduler import Scheduler
from cosim.output.events import EventMonitor
from cosim.rig.run.run import StoppedRun
from tests.kit.engines import armed, python_engine
from tests.kit.recordings import recorded_messages
from tests.kit.rigs import rig_in

RIG = """
name: two
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
    - {name: b, parent: base, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}
joints: {a: {initial: {position: 0.1}}}
controllers:
  - {name: main, type: own.py, joints: [a], after: 20 ms, fallback: {type: pid, kp: 30, ki: 200, kd: 3}}
  - {name: other, type: pid, joints: [b], kp: 30, ki: 10, kd: 3,
     trajectory: {type: quintic, goal: 0.5, duration: 0.05}, fallback: {type: pid, kp: 30, ki: 0, kd: 3}}
schedule: {duration: 100 ms}
"""
OWN = """
from cosim.plugin import ops
from cosim.plugin import COMMAND, FEEDBACK, joint_signals, param, params

@params
class Params:
    after: float = param(unit="s", default=1e9)

class Own:
    calls = 0

    def __init__(self, params, context):
        self.params, self.inputs, self.outputs = params, joint_signals(FEEDBACK, 1), joint_signals(COMMAND, 1)

    def initial(self):
        return {{"sum": ops.zeros(1)}}

    def update(self, t, p, x, u):
        rest, effort = ops.zeros(1), 4.0 * (1.0 - u["position"])
        {lines}
        return {{"sum": x["sum"] + effort}}, {{
            "position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest
        }}

def load(params, context):
    return Own(params, context)
"""
# 0 / 0 from `after` on; for one call only; in one field only
DIVIDES = "alive = ops.where(t < p.after, 1.0, 0.0)\neffort = alive * effort / alive"
ONCE = "alive = ops.where(ops.abs(t - p.after) < 5e-4, 0.0, 1.0)\neffort = alive * effort / alive"
INFINITE = "rest = 1e300 * (1e300 * ops.where(t < p.after, 0.0, 1.0)) * ops.array([1.0])"
# these stay in Python
RAISES = (
    "late = float(t) > float(p.after) - 5e-4\nself.calls += 1\nif late:\n"
    "    raise ZeroDivisionError(f'by nothing, call {self.calls}')"
)
SHAPES = "if float(t) > float(p.after) - 5e-4:\n    effort = ops.zeros(3)"
PAUSES = "effort = effort * float('nan') if float(t) > float(p.after) - 5e-4 else effort"
FAILS = {"divides": DIVIDES, "once": ONCE, "infinite": INFINITE, "raises": RAISES, "shape": SHAPES, "in Python": PAUSES}
TRACED = ("divides", "once", "infinite")


@pytest.fixture
def rig_of(tmp_path):
    def load(lines, *overrides, interpret=False):
        own = OWN.format(lines=lines.replace("\n", "\n        "))
        return rig_in(tmp_path, RIG, *overrides, interpret=interpret, own=own)

    return load


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The run of a rig whose controllers do not fail."""
    return rig_in(tmp_path_factory.mktemp("rig"), RIG, own=OWN.format(lines="")).run()


@pytest.mark.parametrize("how", FAILS)
def test_from_its_failure_on_a_controller_is_replaced_for_good(rig_of, said, sound, how):
    rig = rig_of(FAILS[how])
    assert bool(rig.tick_model.untraceable) == (how not in TRACED)
    run = rig.run()
    (event,) = run.events
    said(event.name)
    assert (event.t, event.lost, event.occurrences) == (pytest.approx(0.020, abs=1e-12), 0.0, 1)
    reported = {"t_s": event.t, "name": event.name, "count": 1, "energy_lost_J": 0.0, "level": "info"}
    assert run.summary["events"] == [reported]
    assert run.summary["outcome"] == "finished"
    q, v, asked = (run[f"a/{what}"] for what in ("position", "velocity", "command_effort"))
    np.testing.assert_allclose(asked[:20], 4.0 * (1.0 - q[:20]), rtol=1e-12)
    # what the fallback's law asks for about the position measured then, from an integral that begins at 0
    integral = np.concatenate([[0.0], np.cumsum(200.0 * 1e-3 * (q[20] - q[20:-1]))])
    np.testing.assert_allclose(asked[20:], 30.0 * (q[20] - q[20:]) - 3.0 * v[20:] + integral, atol=1e-9)
    assert asked[20] == pytest.approx(-3.0 * v[20], abs=1e-12)
    assert abs(q[-1] - q[20]) < 0.02
    # the other controller takes no notice
    for what in ("position", "command_effort"):
        np.testing.assert_allclose(run[f"b/{what}"], sound[f"b/{what}"], atol=1e-12)
    assert not sound.events
    if how == "raises":  # what has failed in Python is not called again
        assert rig.tick_model.loops[0].block.calls == 21


@pytest.mark.parametrize("how", TRACED)
def test_machine_code_the_interpreter_and_the_loop_in_python_agree(rig_of, how):
    rig = rig_of(FAILS[how])
    rows = NativeEngine(rig.tick_model).run(30)[0]
    np.testing.assert_allclose(armed(python_engine(rig)).run(30)[0], rows, atol=1e-12)
    interpreted = rig_of(FAILS[how], interpret=True)
    np.testing.assert_allclose(armed(python_engine(interpreted)).run(30)[0], rows, atol=1e-12)
    fallen = rows[:, rig.tick_model.row.index("fallback_active", "main")[0]]
    np.testing.assert_array_equal(fallen, np.arange(30) >= 20)
    assert not rows[:, rig.tick_model.row.index("fallback_active", "other")].any()
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("how", ["divides", "raises"])
def test_it_takes_over_at_the_times_of_the_controller(rig_of, how):
    """Called at 1, 6, 11 … ms, it fails at 21 ms, and holds what is measured then."""
    run = rig_of(FAILS[how], "controllers.main.period=5 ms", "controllers.main.phase=1 ms").run()
    assert run.events[0].t == pytest.approx(0.021, abs=1e-12)
    # between its calls the drive follows the last command about a held position
    q, v, asked = (run[f"a/{what}"] for what in ("position", "velocity", "command_effort"))
    np.testing.assert_allclose(asked[21:26], 30.0 * (q[21] - q[21:26]) - 3.0 * v[21:26], atol=1e-9)


@pytest.mark.parametrize("how", ["divides", "raises"])
def test_a_controller_that_fails_at_once_is_replaced_at_once(rig_of, how):
    run = rig_of(FAILS[how], "controllers.main.after=0").run()
    assert run.events[0].t == 0.0
    np.testing.assert_allclose(run["a/position"], 0.1, atol=1e-12)


@pytest.mark.parametrize("fallback", [None, "{type: own.py, after: 40 ms}"], ids=["none", "fails"])
@pytest.mark.parametrize("how", ["divides", "raises"])
def test_without_a_sound_fallback_a_failure_ends_the_run(rig_of, said, how, fallback):
    """The takeover is reported if its row is there."""
    with pytest.raises(StoppedRun) as caught:
        rig_of(FAILS[how], f"controllers.main.fallback={fallback or 'null'}").run()
    run = caught.value.run
    said(run.fault, r"(?<=finite \(at ).*?(?=\))")
    assert run.fault.startswith(f"stopped at tick {40 if fallback else 20} ")
    assert [event.t for event in run.events] == ([pytest.approx(0.020, abs=1e-12)] if fallback else [])


def test_a_takeover_is_reported_once_for_any_blocks_of_rows(rig_of):
    other = "{name: other, type: own.py, joints: [b], after: 30 ms, fallback: {type: pid, kp: 1, ki: 0, kd: 1}}"
    rig = rig_of(DIVIDES, f"controllers.other={other}")
    rows = NativeEngine(rig.tick_model).run(60)[0]
    whole = EventMonitor(rig.tick_model)(rows)
    for size in (1, 7, 20, 21):
        watch = EventMonitor(rig.tick_model)
        parts = [watch(rows[k : k + size]) for k in range(0, 60, size)]
        assert [event for part in parts for event in part] == whole
        assert watch(rows[:0]) == [] == watch(rows[-3:])
    assert [(round(event.t, 6), event.name.split("'")[1]) for event in whole] == [(0.02, "main"), (0.03, "other")]


@pytest.mark.parametrize("how", ["divides", "raises"])
def test_a_rig_that_is_armed_again_has_its_controller_back(rig_of, how):
    rig = rig_of(FAILS[how])
    with Scheduler(lambda: rig.engine(), None, rig.tasks) as scheduler:
        watch, reported = EventMonitor(rig.tick_model), []
        scheduler.prepare()
        for after in (0.020, 0.090):
            rig_time = scheduler.engine.number * 1e-3
            scheduler.engine.view("parameters")[0] = after  # `after` of the first controller
            scheduler.arm()
            assert scheduler.engine.view("fallback_active", "main") == 0.0 and rig.tick_model.loops[0].failure == ""
            scheduler.start(60)
            while (block := scheduler.read()) is not None:
                reported += watch(block.rows)
            assert rig_time < reported[-1].t == pytest.approx(after, abs=1e-12)
        assert len(reported) == 2


def test_a_takeover_is_in_the_recording_and_in_what_the_terminal_shows(rig_of, tmp_path, capsys):
    run = rig_of(DIVIDES).run(record=tmp_path / "run.mcap")
    (event,) = run.events
    logged = [message for message in recorded_messages(tmp_path / "run.mcap") if message.topic == "/log"]
    assert [(message.t_ns, message.fields["message"]) for message in logged] == [(20_000_000, event.name)]
    print_summary(run)
    assert f"event    0.02 s  {event.name}\n" in capsys.readouterr().out
