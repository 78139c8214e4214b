"""A driver of any family that the compiled loop calls does what it does in the Python engine: the same ticks, the same
efforts of its drives, the same words of a fault. All in simulated time."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest

from cosim.apps.scenario.armed_rig import in_simulated_time
from cosim.apps.scenario.stepped_engine import SteppedDrives, SteppedEngine, stepped
from cosim.execution.hardware.emulation.fault_injection import FaultInjection, InjectedFault
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.stepped_loop import SteppedLoop

from .families import Case, write_rig
from .marks import in_memory
from .rules import PATIENCE
from .test_faults import LATE, sections

TICKS = 40
FAULTS = {
    "motor_fault": {"joint": "a"},
    "encoder_jump": {"joint": "a", "size": 0.5},
    "encoder_nan": {"joint": "a"},
    "drop": {},
    "bus_off": {},
    "velocity_unit": {"joint": "a", "scale": 0.1047},
}


class Outcome(NamedTuple):
    """rows (k, nr) of the ticks; motors (k, 2) efforts that the drives requested; off [s]: after the stop."""

    rows: np.ndarray
    motors: np.ndarray
    fault: str
    off: float | None
    unsent: list[int]


@cache
def rig_of(case: Case) -> Rig:
    with TemporaryDirectory() as folder:
        path = write_rig(Path(folder) / "rig.yaml", sections(case, Path(), tracking=10.0))
        return Rig(in_simulated_time(read_rig(path)), interpret=False)


def outcome(kind: type[SteppedDrives], rig: Rig, faults: Sequence[FaultInjection]) -> Outcome:
    engine = stepped(kind, rig)
    engine.server.faults = tuple(map(InjectedFault, faults))
    rows, motors, fault = [], [], ""
    try:
        engine.open()
        engine.begin(rig.spec.schedule.blend)
        while len(rows) < TICKS and not fault:
            row, fault = engine.run(1)
            rows.append(row)
            motors.append([motor.requested for motor in engine.server.motors.motors])
        off = engine.time_until_off(PATIENCE) if fault else None
    finally:
        engine.close()
    return Outcome(np.concatenate(rows), np.array(motors), fault, off, engine.hardware_manager.unsent)


def outcome_of_both(case: Case, folder: Path, *faults: dict[str, Any]) -> Outcome:
    """Of the Python engine and of the compiled loop."""
    data = sections(case, folder, tracking=10.0)
    data["emulator"]["faults"] = list(faults)
    injected = read_rig(write_rig(folder / "rig.yaml", data)).emulator.faults
    python, loop = (outcome(kind, rig_of(case), injected) for kind in (SteppedEngine, SteppedLoop))
    np.testing.assert_array_equal(loop.rows, python.rows)
    np.testing.assert_array_equal(loop.motors, python.motors)
    assert loop[2:] == python[2:]
    return loop


@in_memory
def test_every_family_moves_as_in_the_python_engine(case, tmp_path):
    found = outcome_of_both(case, tmp_path)
    assert found.fault == "" and len(found.rows) == TICKS
    assert np.ptp(found.motors, axis=0).min() > 1e-4


@in_memory
@pytest.mark.parametrize("kind", FAULTS)
def test_what_ends_a_run_is_found_in_the_same_tick_with_the_same_words(case, kind, tmp_path):
    found = outcome_of_both(case, tmp_path, {"kind": kind, **FAULTS[kind], **LATE})
    assert found.fault and len(found.rows) < TICKS and found.off is not None
