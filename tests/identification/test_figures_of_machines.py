"""What numbers leave of the drives of real machines, from unit masses and no friction; and how sure they are over days.

The bounds are what least squares without bounds leave with the same friction, and a few percent.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

from cosim import load_rig
from cosim.apps.identification.friction_ladder import climb
from cosim.apps.identification.identification import identify
from cosim.apps.identification.motion_file import motion_file
from cosim.apps.new.command import new_rig
from cosim.core.tables.options import TableOptions
from cosim.rig.reading.yaml_source import overrides_of
from tests.kit.recorded_machines import recorded

UR10E = TableOptions(gains={"effort": "14.87,13.26,11.13,10.62,11.03,11.47 N*m/A"})
DAYS = (
    "ur-20_02_05-20sec_8harm.csv", "ur-20_02_10-30sec_12harm.csv", "ur-20_02_12-40sec_12harm.csv",
    "ur-20_02_19_14harm50sec.csv",
)  # fmt: skip
TX40 = TableOptions(
    columns={"position": "motor_position", "effort": "motor_torque"},
    gains={"position": [1 / ratio for ratio in (32, 32, 45, -48, 45, 32)], "effort": [32, 32, 45, -48, 45, 32]},
)
WANTED = ["inertia", "friction", "rotor_inertia", "offset"]


def rig_file(machine: str, name: str, folder: Path) -> Path:
    path = folder / f"{machine}.yaml"
    new_rig(path, str(recorded(machine, name).parent / "kinematics.urdf"), "5", "ideal", False, [], [], True)
    return path


def test_ur10e(tmp_path: Path) -> None:
    """Friction that grows with the load is found to be the law, and predicts another day better."""
    path, training, check = rig_file("ur10e", DAYS[2], tmp_path), recorded("ur10e", DAYS[2]), recorded("ur10e", DAYS[1])

    def find(rig, numbers):
        return identify(rig, training, numbers, table=UR10E, check=[check])

    found = climb(load_rig(path), lambda keys: load_rig(path, overrides_of(keys)), find, WANTED)
    taken = [law for law in found.laws if law.taken]
    assert [law.title for law in taken] == ["viscous and Coulomb", "load of the drive"]
    assert taken[0].training < 0.0373
    assert taken[1].training < 0.0283
    assert taken[1].checks[0] < 0.033
    overlaid = load_rig(path, overrides_of(found.overlay()))
    assert identify(overlaid, [], table=UR10E, check=[check]).residual(training=False).whole < 0.033


def test_tx40(tmp_path: Path) -> None:
    """Whose last motor turns with two joints."""
    path = rig_file("tx40", "tx40_train.npz", tmp_path)
    rig = load_rig(path, ["mechanism.rotors={wrist: {turns: {joint_5: 1, joint_6: 1}, inertia: 0}}"])
    log = motion_file(f"{recorded('tx40', 'tx40_train.npz')}:zero=joint_2 -90 deg, joint_3 90 deg")
    found = identify(rig, log, WANTED, table=TX40, motors={"joint_6": "wrist"})
    assert found.residual(training=True).whole < 0.056
    assert found.residual(training=False).whole < 0.13
    uncoupled = identify(load_rig(path), log, WANTED, table=TX40)
    left, coupled = (of.residual(training=True).joints["joint_5"] for of in (uncoupled, found))
    assert left > 1.4 * coupled


def test_panda(tmp_path: Path) -> None:
    rig = load_rig(rig_file("panda", "panda_train.csv", tmp_path))
    found = identify(rig, recorded("panda", "panda_train.csv"), WANTED)
    assert found.residual(training=True).whole < 0.0148
    assert found.residual(training=False).whole < 0.02


def test_intervals_hold_over_days(tmp_path: Path) -> None:
    """Of numbers and of sums of products, each found on single days: two differ by less than their intervals allow."""
    path = rig_file("ur10e", DAYS[0], tmp_path)
    known = []
    for name in DAYS:
        found = identify(load_rig(path), recorded("ur10e", name), WANTED, table=UR10E, training=0.95)
        single = [number for number in found.numbers if number.state == "found"]
        known.append({number.name: number for number in (*found.base, *single)})
    inside = [
        abs(a[name].value - b[name].value) <= np.hypot(a[name].interval, b[name].interval)
        for a, b in itertools.combinations(known, 2)
        for name in a.keys() & b.keys()
    ]
    assert len(inside) > 300
    assert np.mean(inside) > 0.9
