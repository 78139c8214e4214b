"""Logs of real machines are read as they are, down to the samples of a fit; their velocities check the derivatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.identification.equation_error import sources_of
from cosim.apps.identification.recorded_motion import (
    MotionSamples,
    RecordedMotion,
    default_cutoff,
    read_motion,
    samples_of,
)
from cosim.apps.new.command import new_rig
from cosim.core.tables import open_table
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.log import MeasuredColumn, read_log
from cosim.core.tables.options import TableOptions
from tests.identification import pendulum
from tests.kit.recorded_machines import recorded

RATIOS = (32, 32, 45, -48, 45, 32)  # of the TX40, its wrist taken as if it were uncoupled


class Machine(NamedTuple):
    """options: what its files do not say; window [s]: of the means, 0 for even rows; noted: words of the notes; moving:
    least number of samples in which a joint moves steadily; velocity: greatest difference from the recorded ones, of
    their root mean square, None where there are none."""

    files: tuple[str, ...]
    options: dict[str, Any]
    window: float
    noted: tuple[str, ...]
    moving: int = 20
    velocity: float | None = None


MACHINES: dict[str, Machine] = {
    "ur10e": Machine(
        ("ur-20_02_05-20sec_8harm.csv", "ur-20_02_19_14harm50secLoad.csv", "ur-20_01_22-joint_2.csv"),
        {"gains": {"effort": "14.87,13.26,11.13,10.62,11.03,11.47 N*m/A"}},
        0.02,
        ("q1..q6 are taken as the position of shoulder_pan_joint", "i1..i6 are currents", "rows are uneven"),
        velocity=0.01,
    ),
    "tx40": Machine(
        ("tx40_train.npz",),
        {
            "columns": {"position": "motor_position", "effort": "motor_torque"},
            "gains": {"position": [1 / ratio for ratio in RATIOS], "effort": RATIOS},
        },
        0.0,
        ("there is no column of times; 'ts' = 0.0002",),
    ),
    "panda": Machine(("panda_train.csv",), {}, 0.004, ("rows are uneven", "2 gaps of more than"), velocity=0.02),
    "tiago": Machine(
        ("tiago_train.csv",),
        {"gains": {"effort": "1,13.6,13.6,-8.7,-8.7,-20.6,-20.6,-20.6 N*m/A", "torso_lift_joint/effort": "1 N/A"}},
        0.02,
        ("currents; times their gains they are the effort", "rows are uneven"),
        velocity=0.2,  # reported through a filter
    ),
    "openarm": Machine(
        ("openarm_joint_1.csv", "openarm_joint_3.csv"), {}, 0.09, ("rows are uneven", "gaps of more than"), 9
    ),
}  # fmt: skip
CASES = [(machine, name) for machine, of in MACHINES.items() for name in of.files]


def rig_of(machine: str, path: Path, folder: Path) -> Any:
    rig = folder / "rig.yaml"
    robot = path.parent / "kinematics.urdf"
    if robot.exists():
        new_rig(rig, str(robot), "5", "ideal", False, [], [], True)
    else:
        rig.write_text(pendulum.RIG)
    return load_rig(rig)


@pytest.mark.parametrize(("machine", "name"), CASES)
def test_a_log_is_read_down_to_the_fit(machine: str, name: str, tmp_path: Path) -> None:
    of, path = MACHINES[machine], recorded(machine, name)
    rig = rig_of(machine, path, tmp_path)
    options = TableOptions(**of.options)
    motion = read_motion(rig, path, sources_of(rig), options)
    assert motion.source == "effort" and motion.joints == tuple(rig.joints)
    assert motion.window == pytest.approx(of.window, rel=0.15)
    for words in of.noted:
        assert any(words in note for note in motion.notes), (words, motion.notes)
    assert not any("left out" in note for note in motion.notes)  # no row of these is rubbish
    samples = samples_of(motion, default_cutoff(motion))
    for values in (samples.position, samples.velocity, samples.acceleration, samples.drive):
        assert np.isfinite(values).all()
    assert samples.moving.sum(axis=0).max() >= of.moving
    if of.velocity is not None:
        check_velocities(rig, path, options, motion, samples, of.velocity)


def check_velocities(
    rig: Any, path: Path, options: TableOptions, motion: RecordedMotion, samples: MotionSamples, most: float
) -> None:
    """Beside the ones that the machine reports, through the same filter."""
    columns = NamedColumns.of(open_table(path), rig.joints, options, by_order=True)
    wanted = [MeasuredColumn(joint, "velocity", columns.column(joint, "velocity"), "rad") for joint in rig.joints]  # type: ignore[arg-type]
    log = read_log(columns, wanted)
    reported = np.column_stack([np.interp(samples.t, log.t, column) for column in log.values.T])
    found, true = samples.smoothed(samples.velocity), samples.smoothed(reported)
    turning = np.array([unit == "rad" for unit in rig.plant.model.dof_units])  # the lift of TIAGo has a unit of its own
    for k in np.flatnonzero(turning & (samples.moving.sum(axis=0) > 100)):
        left, size = (np.sqrt(np.mean(of[:, k] ** 2)) for of in (found - true, true))

        assert left < most * size, (rig.joints[k], left, size)
