"""What a controller returns arrives at the drive, and what it reads is what the drive measured: every family, both
engines, controllers in machine code and in Python. What is not finite or absurd stops the run before the drive gets it.
"""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.apps.scenario.stepped_engine import SteppedEngine
from cosim.rig.run.run import StoppedRun
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.emulated import emulated

from .families import JOINTS, SCALES, Case, addresses, load_cycle, rig, section, write_rig
from .marks import ENGINES, param

LEVEL = 0.02  # N·m at the drives
SWING = 0.005  # N·m/rad of measured position
TICKS = 24
OWN = """
import math
from cosim.plugin import ops
from cosim.plugin import COMMAND, Signal, joint_signals, param, params

@params
class Params:
    pass

class Own:
    def __init__(self, params, context):
        self.params, n = params, len(context.joints)
        self.inputs = joint_signals(("position", "velocity"), n)
        self.outputs = joint_signals(COMMAND, n)
        self.signals = {"seen": Signal((n,), "rad"), "time": Signal((), "s")}

    def initial(self):
        return {"ticks": 0.0}

    def update(self, t, p, x, u):
        PYTHON
        rest = 0.0 * u["position"]
        wrong = ops.where(x["ticks"] < 6.0, 0.0, SPOILED)
        effort = [-0.04, 0.02] + 0.005 * u["position"] + wrong
        command = {"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}
        return {"ticks": x["ticks"] + 1.0}, {**command, "seen": u["position"], "time": rest[0] + t}

def load(params, context):
    return Own(params, context)
"""
# what spoils an effort -> the cause that is named; tests/control/guard_cases.yaml has all kinds
CAUSES = {"math.nan": "not finite", "-1e9": "cannot be meant"}
WAYS = {"in machine code": "", "in Python": "float(t)"}


def file_of_rig(case: Case, folder: Path, way: str, spoiled: str) -> Path:
    """Two joints at 100 Hz, on serial ports at 50 Hz; from tick 6 on `spoiled` is added to the effort."""
    data = rig(section(case, folder, mode="effort", watchdog=2.0), addresses(case))
    for body in data["mechanism"]["bodies"]:
        body["damping"] *= 3.0  # far from the limits of velocity, also where feedback is late
    step = 0.02 if case.line == "pty" else 0.01
    (folder / "own.py").write_text(OWN.replace("PYTHON", WAYS[way]).replace("SPOILED", spoiled))
    data |= {
        "controllers": [{"name": "own", "type": "own.py"}],
        "guard": {"stale": 1.5, "watchdog": 2.0},
        "schedule": {"step": step, "duration": TICKS * step, "realtime": {"overrun": "skip", "warm_up": 60}},
    }
    return write_rig(folder / "rig.yaml", data)


class Outcome(NamedTuple):
    """A run: its signals, the efforts that each drive requested of its motor in turn, and why it stopped."""

    signals: dict[str, np.ndarray]
    asked: dict[str, list[float]]
    fault: str
    python: bool  # whether the loop calls Python


def stepped_run(case: Case, folder: Path, way: str, spoiled: str = "0.0") -> Outcome:
    """In simulated time, by the Python engine."""
    path = file_of_rig(case, folder, way, spoiled)
    armed = ArmedRig(read_rig(path), [])
    engine = armed.engine
    assert isinstance(engine, SteppedEngine)
    asked, rows, fault = {name: [] for name in JOINTS}, [], ""
    armed.begin()
    while not fault and len(rows) < TICKS:
        row, fault = armed.run(1)
        rows.append(row)
        for name, motor in zip(JOINTS, engine.server.motors.motors, strict=True):
            asked[name].append(motor.requested)
    values = armed.signals(np.concatenate(rows))
    armed.close()
    return Outcome(
        {name: values[:, k] for name, k in armed.names.items()}, asked, fault, "own" in armed.rig.tick_model.untraceable
    )


def compiled_run(case: Case, folder: Path, way: str, spoiled: str = "0.0") -> Outcome:
    """In real time, by the compiled engine with its bus."""
    load_cycle(case)
    path = file_of_rig(case, folder, way, spoiled)
    one = load_rig(path)
    assert one.why_python_loop == ""
    asked = {name: [] for name in JOINTS}

    def note(emulation):
        for name, motor in zip(JOINTS, emulation.motors.motors, strict=True):
            asked[name].append(motor.requested)

    with emulated(path, "schedule.step=1 ms", "controllers=[]", after_step=note):
        try:
            run, fault = one.run(), ""
        except StoppedRun as stopped:
            run, fault = stopped.run, str(stopped)
    return Outcome({name: run[name] for name in run.units}, asked, fault, "own" in one.run_model.untraceable)


# the cycle of Modbus does not fit into these steps
CASES = [case for case in ENGINES if case.family != "modbus"]
# all ways and causes by one case of each engine, one of them by the others
FIRST = {case.compiled: case for case in reversed(CASES)}.values()
HOW = [param(case, way) for case in CASES for way in (WAYS if case in FIRST else list(WAYS)[:1])]
# that the guard stops before anything is written does not know the family
SPOILED = [param(case, *pair) for case in FIRST for pair in itertools.product(WAYS, CAUSES)]


def run_of(case: Case, *how: Any) -> Outcome:
    return (stepped_run if case.stepped else compiled_run)(case, *how)


@pytest.mark.parametrize(("case", "way"), HOW)
def test_a_command_arrives_at_the_drive_and_the_measurement_at_the_controller(case, way, tmp_path):
    signals, asked, fault, python = run_of(case, tmp_path, way)
    assert (fault, python) == ("", way == "in Python")
    for name, scale in SCALES.items():
        measured, command = signals[f"{name}/measured_position"], signals[f"{name}/command_effort"]
        assert np.ptp(measured) > 0.02  # it moves
        np.testing.assert_allclose(signals[f"{name}/seen"], measured, atol=1e-12)
        np.testing.assert_allclose(command, LEVEL * scale + SWING * measured, atol=1e-12)
        requested = np.array([effort for effort in asked[name] if effort])
        assert np.median(requested) == pytest.approx(np.median(command) / scale, abs=0.003)  # the unit of a Dynamixel
    np.testing.assert_allclose(np.diff(signals["own/time"]), np.diff(signals["own/time"])[0], atol=1e-9)


@pytest.mark.parametrize(("case", "way", "spoiled"), SPOILED)
def test_what_is_not_finite_or_absurd_stops_and_does_not_reach_the_drive(case, way, spoiled, tmp_path):
    _, asked, fault, _ = run_of(case, tmp_path, way, spoiled)
    assert "tick 6 " in fault and CAUSES[spoiled] in fault
    assert max(abs(effort) for efforts in asked.values() for effort in efforts) < 10.0 * LEVEL
