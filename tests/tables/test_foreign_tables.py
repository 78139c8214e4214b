"""Tables as other programs write them: each is read to the bit by whatever takes it, or refused with the fix."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cosim.control.feedforward_table import FeedforwardTable
from cosim.core.errors import SourceLocation
from cosim.core.tables import open_table
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.joint_table import TableFile, read_joint_table
from cosim.core.tables.log import MeasuredColumn, read_log
from cosim.core.tables.options import TableOptions
from cosim.core.units import UNITS
from cosim.plugins.trajectories import waypoints
from cosim.rig.reading.schema import Reading
from cosim.rig.reading.tables import read_tables
from cosim.rig.run.measured_log import measured_log
from tests.kit.refusals import refusal
from tests.tables.foreign_texts import JOINTS, READ, REFUSED, Foreign, T

OPTIONS = ("--unit ", "--column ", "--topic", "--gain ")
DEGREES = [f"{joint}_deg" for joint in JOINTS]
EXACT = 1e-15  # relative: one rounding of a factor


def written(folder: Path, foreign: Foreign) -> Path:
    path = folder / f"table{foreign.suffix}"
    path.write_bytes(foreign.data)
    return path


def numbers(foreign: Foreign) -> np.ndarray:
    return np.array(foreign.numbers) * foreign.factor


def assert_times(t: np.ndarray, foreign: Foreign) -> None:
    """Those of the day and of dates are differences, all others as they are."""
    np.testing.assert_allclose(t - t[0], T, rtol=0.0, atol=1e-11 if foreign.noted else 2e-15)


@pytest.mark.parametrize("name", READ)
def test_waypoints(name: str, tmp_path: Path) -> None:
    foreign = READ[name]
    path = written(tmp_path, foreign)
    table = read_joint_table(TableFile(file=path.name, **foreign.keys), tmp_path, JOINTS, "position")
    assert_times(table.t, foreign)
    np.testing.assert_allclose(table.values, numbers(foreign), rtol=EXACT)
    assert table.notes == foreign.noted
    motion = waypoints.load(waypoints.Params(file=path.name, **foreign.keys), JOINTS, tmp_path, numbers(foreign)[0])
    assert motion.doubts == tuple(f"{path}: {note}" for note in foreign.noted)
    for t, row in zip(table.t, numbers(foreign), strict=True):
        np.testing.assert_allclose(motion.sample(float(t))["position"], row, atol=1e-12)


@pytest.mark.parametrize("name", [name for name, foreign in READ.items() if foreign.factor == 1.0])
def test_feedforward(name: str, tmp_path: Path) -> None:
    """The same tables, of efforts."""
    foreign = READ[name]
    foreign = foreign._replace(text=foreign.text.replace("position", "effort").replace("rad", "N*m"))
    path = written(tmp_path, foreign)
    given = FeedforwardTable(file=path.name, **foreign.keys)
    rest = SimpleNamespace(end=0.0, sample=lambda _: {"effort": np.zeros(2)})
    around = given.around(rest, JOINTS, tmp_path)  # type: ignore[arg-type]
    assert around.doubts == tuple(f"{path}: {note}" for note in foreign.noted)
    begin = around.end - T[-1]
    for t, row in zip(T, numbers(foreign), strict=True):
        np.testing.assert_allclose(around.sample(begin + t)["effort"], row, atol=1e-5 if begin else 1e-12)


def in_table(name: str) -> dict[str, Any]:
    """The columns of a table of a law, of a table that has these as they are."""
    columns = READ[name].keys.get("columns", {})
    return {axis: columns.get(joint, joint) for axis, joint in (("x", "elbow"), ("y", "shoulder"))}


BY_JOINTS = ("header.stamp", "field.", "/joint_states", "name[0]", "shoulder.position", "elbow_deg", "der(")
LAWS = [name for name, foreign in READ.items() if not any(word in foreign.text for word in BY_JOINTS)]


@pytest.mark.parametrize("name", LAWS)
def test_the_table_of_a_law(name: str, tmp_path: Path) -> None:
    foreign = READ[name]
    reading = Reading(lambda path: SourceLocation("rig.yaml", None, ".".join(map(str, path))), [], tmp_path)
    column = in_table(name)
    units = {column[axis]: "deg" for axis in "xy"} if "units" in foreign.keys and foreign.factor != 1.0 else {}
    keys = {"file": written(tmp_path, foreign).name, **column, **({"units": units} if units else {})}
    found = read_tables({"law": keys}, ("tables",), reading)
    assert not reading.errors
    law = found["law"]
    rows = dict.fromkeys(zip(*np.broadcast_to(numbers(foreign), (4, 2)).T, strict=True))
    np.testing.assert_allclose(law.points[0], [elbow for _, elbow in rows], rtol=EXACT)
    np.testing.assert_allclose(law.values, [shoulder for shoulder, _ in rows], rtol=EXACT)


def as_log(foreign: Foreign) -> TableOptions:
    """Of a log, whose columns of joints alone are to be named."""
    units, columns = foreign.keys.get("units", {}), foreign.keys.get("columns", {})
    return TableOptions(units, columns, None, OPTIONS)


@pytest.mark.parametrize("name", READ)
def test_a_log(name: str, tmp_path: Path) -> None:
    foreign = READ[name]
    table = open_table(written(tmp_path, foreign))
    of = NamedColumns.of(table, JOINTS, as_log(foreign))
    columns = of.required(JOINTS, "position", bare=True)
    log = read_log(of, [MeasuredColumn(joint, "position", k, "rad") for joint, k in zip(JOINTS, columns, strict=True)])
    assert_times(log.t, foreign)
    np.testing.assert_allclose(log.values, numbers(foreign), rtol=EXACT)


@pytest.mark.parametrize("name", READ)
def test_comparison_with_a_log(name: str, tmp_path: Path) -> None:
    """A column with the name of a joint alone is its position, which is said."""
    foreign = READ[name]
    names = [f"{joint}/{what}" for joint in JOINTS for what in ("position", "effort")]
    run = FakeRun(JOINTS, {signal: "rad" if signal.endswith("position") else "N*m" for signal in names})
    path, options = written(tmp_path, foreign), as_log(foreign)
    log, table = measured_log(path, run, options), open_table(path)  # type: ignore[arg-type]
    named = {column for column in (options.columns.get(joint) for joint in JOINTS) if column}
    alone = [name for name in table.names if name.split("[")[0].split("(")[0].strip() in (*JOINTS, *DEGREES)]
    alone = [name for name in alone if name not in named]
    said = [note for note in log.notes if "taken as the position; to be certain, give --column " in note]
    assert len(said) == bool(alone) and all(name in note for note in said for name in alone)
    assert_times(log.t, foreign)
    assert list(log.signals) == ["shoulder/position", "elbow/position"]
    np.testing.assert_allclose(log.values, numbers(foreign), rtol=EXACT)


@dataclasses.dataclass
class RigOfRun:
    name: str
    path: str
    units: dict[str, str]
    joints: tuple[str, ...]


class FakeRun:
    """What `measured_log` knows of a run."""

    def __init__(self, joints: tuple[str, ...], units: dict[str, str]) -> None:
        self.joints, self.units = joints, units
        self.rig = RigOfRun("arm", "arm.yaml", units, joints)
        self.t = np.zeros(1)

    def __getitem__(self, signal: str) -> np.ndarray:
        return np.zeros(1)

    def __contains__(self, signal: str) -> bool:
        return signal in self.units


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path, said: Any) -> None:
    foreign = REFUSED[name]
    path = written(tmp_path, foreign)
    keys = TableFile(file=path.name, **foreign.keys).of_joints(dict.fromkeys(JOINTS, "revolute"))
    said(refusal(waypoints.read_waypoints, keys, tmp_path, JOINTS))


def test_every_table_is_another_one() -> None:
    every = [*READ.values(), *REFUSED.values()]
    assert len(READ) >= 60 and len(REFUSED) >= 40
    assert len({(foreign.data, str(foreign.keys)) for foreign in every}) == len(every)


NAMES: dict[str, tuple[str, tuple[str, ...], list[int | None]]] = {
    "the longest name owns a column": ("left/elbow/position", ("elbow", "left/elbow"), [None, 1]),
    "a path": ("/robot/elbow/position", ("elbow", "left elbow"), [1, None]),
    "names that differ by their case": ("ELBOW_pos", ("elbow", "Elbow"), [None, None]),
    "another case": ("ELBOW_pos", ("elbow", "wrist"), [1, None]),
    "a joint that looks like another one with its unit": ("arm_deg", ("arm", "arm_deg"), [None, 1]),
    "a joint that looks like a quantity of another": ("elbow_pos", ("elbow", "elbow_pos"), [None, 1]),
    "a number is no joint": ("position[1]", ("1", "2"), [None, None]),
    "a joint of digits": ("1/position", ("1", "2"), [1, None]),
    "a quantity of the only joint": ("position", ("elbow",), [1]),
    "a quantity of nobody": ("position", ("elbow", "wrist"), [None, None]),
}


@pytest.mark.parametrize("case", NAMES)
def test_whose_column_it_is(case: str, tmp_path: Path) -> None:
    column, joints, expected = NAMES[case]
    path = tmp_path / "a.csv"
    path.write_text(f'"t","{column}"\n0,1\n1,2\n')
    of = NamedColumns.of(open_table(path), joints, TableOptions())
    assert [of.column(joint, "position", bare=True) for joint in joints] == expected


@pytest.mark.parametrize(
    ("column", "joint", "unit"),
    [
        ("arm_deg", "arm", "deg"), ("arm_deg", "arm_deg", None), ("arm [deg]", "arm", "deg"),
        ("arm [deg]", "arm [deg]", None), ("x/arm_deg", "arm_deg", None), ("arm_deg_rad", "arm_deg", "rad"),
        ("Arm (°)", "arm", "deg"),
    ],
)  # fmt: skip
def test_what_looks_like_a_unit_may_be_of_the_name(column: str, joint: str, unit: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'"t","{column}"\n0,1\n1,2\n')
    of = NamedColumns.of(open_table(path), (joint, "other"), TableOptions())
    assert of.column(joint, "position", bare=True) == 1
    assert of.factor(joint, "position", 1, "rad") == UNITS[unit or "rad"][1]
