"""Columns of all joints at once: lists in the order of the joints, columns that are numbered so, gains, and clocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim.core.tables import open_table
from cosim.core.tables.gains import read_gains
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.joint_table import TableFile, read_joint_table
from cosim.core.tables.log import JointLog, MeasuredColumn, read_log
from cosim.core.tables.options import TableOptions
from cosim.core.tables.times import times_of
from tests.kit.refusals import refusal

JOINTS = ("shoulder", "elbow", "wrist")
KEYS = ("--unit ", "--column ", "--topic", "--gain ")


def table_of(folder: Path, names: list[str]) -> Path:
    """Column k is k everywhere."""
    path = folder / "log.csv"
    rows = [",".join([f"{0.01 * row:g}", *(str(k) for k in range(1, len(names) + 1))]) for row in range(30)]
    path.write_text("\n".join([",".join(['"t"', *(f'"{name}"' for name in names)]), *rows, ""]))
    return path


def columns_of(
    path: Path, quantity: str, columns: dict[str, Any] | None = None, joints: tuple[str, ...] = JOINTS
) -> list[int | None]:
    of = NamedColumns.of(open_table(path), joints, TableOptions({}, columns or {}, None, KEYS), by_order=True)
    return [of.column(joint, quantity) for joint in joints]


def numbered(form: str, first: int = 1, count: int = 3) -> list[str]:
    return [form.replace("#", str(k)) for k in range(first, first + count)]


ORDERED: dict[str, tuple[list[str], str]] = {
    "q1": (numbered("q#"), "position"),
    "from 0": (numbered("q#", 0), "position"),
    "qd1": (numbered("qd#"), "velocity"),
    "i1": (numbered("i#"), "current"),
    "tau1": (numbered("tau#"), "effort"),
    "J1": (numbered("J#"), "position"),
    "joint1/position": (numbered("joint#/position"), "position"),
    "joint_1_vel": (numbered("joint_#_vel"), "velocity"),
    "pos_joint1": (numbered("pos_joint#"), "position"),
    "actual_q_0": (numbered("actual_q_#", 0), "position"),
    "an array": (numbered("effort[#]", 0), "effort"),
    "with units": (numbered("q# [deg]"), "position"),
    "with units behind": (numbered("q#_deg"), "position"),
    "motor currents": (numbered("motor_current_#"), "current"),
    "beside others": ([*numbered("q#"), *numbered("qd#"), *numbered("i#"), "temp1", "x"], "velocity"),
    "beside commands": ([*numbered("target_q_#", 0), *numbered("actual_q_#", 0)], "position"),
    "another order in the file": (["q3", "q1", "q2"], "position"),
}


@pytest.mark.parametrize("case", ORDERED)
def test_numbered_columns_are_those_of_the_joints(case: str, tmp_path: Path) -> None:
    names, quantity = ORDERED[case]
    path = table_of(tmp_path, names)
    found = columns_of(path, quantity)
    assert None not in found
    digits = ["".join(c for c in names[k - 1] if c.isdigit()) for k in found if k is not None]
    assert digits == sorted(digits) and len(set(digits)) == 3
    of = NamedColumns.of(open_table(path), JOINTS, TableOptions({}, {}, None, KEYS), by_order=True)
    (said,) = of.said([(joint, quantity, k) for joint, k in zip(JOINTS, found, strict=True) if k is not None])
    assert f"are taken as the {quantity} of shoulder, elbow, wrist, in this order" in said
    given = said.partition("to be certain, give --column ")[2].strip("'").removeprefix(f"{quantity}=")
    assert columns_of(path, quantity, {quantity: given}) == found
    strict = NamedColumns.of(open_table(path), JOINTS, TableOptions())
    assert [strict.column(joint, quantity) for joint in JOINTS] == [None] * 3  # nobody's in tables of references


NOBODYS: dict[str, tuple[list[str], str]] = {
    "too few": (numbered("q#", 1, 2), "position"),
    "too many": (numbered("q#", 1, 4), "position"),
    "from 2": (numbered("q#", 2), "position"),
    "a number twice": ([*numbered("q#"), "q2"], "position"),
    "one with a hole": (["q1", "q2", "q4"], "position"),
    "two arms": ([*numbered("left_q#"), *numbered("right_q#")], "position"),
    "two spellings": ([*numbered("q#"), *numbered("pos#")], "position"),
    "commands alone": (numbered("target_q_#"), "position"),
    "at the motors": (numbered("motor_position_#"), "position"),
    "torques of motors": (numbered("motor_torque[#]", 0), "effort"),
    "errors": (numbered("q_err#"), "position"),
    "of nothing": (numbered("x#"), "position"),
    "joints that may be anything": (numbered("J#"), "effort"),
    "beside a name": (["elbow/position", *numbered("q#")], "position"),
}


@pytest.mark.parametrize("case", NOBODYS)
def test_numbered_columns_that_are_nobodys(case: str, tmp_path: Path) -> None:
    names, quantity = NOBODYS[case]
    found = columns_of(table_of(tmp_path, names), quantity)
    assert [k for k in found if k is not None and names[k - 1] != "elbow/position"] == []


LISTS: dict[str, tuple[list[str], Any, list[int]]] = {
    "counted": (numbered("q#"), "q1..q3", [1, 2, 3]),
    "counted in short": (numbered("q#"), "q1..3", [1, 2, 3]),
    "counted down": (numbered("q#"), "q3..q1", [3, 2, 1]),
    "with zeros": (["q01", "q02", "q03"], "q01..q03", [1, 2, 3]),
    "in brackets": (numbered("a[#]"), "a[1]..a[3]", [1, 2, 3]),
    "with units": (numbered("q# [deg]"), "q1..q3", [1, 2, 3]),
    "with commas": (["a", "b", "c"], "b, c,a", [2, 3, 1]),
    "mixed": (["a", "q1", "q2"], "q1..q2,a", [2, 3, 1]),
    "by place": (["a", "b", "c"], "#2..#4", [1, 2, 3]),
    "an array": (numbered("motor_position[#]", 0), "motor_position", [1, 2, 3]),
    "a list": (["a", "b", "c"], ["c", "b", "a"], [3, 2, 1]),
    "a list of counted ones": (["a", "q1", "q2"], ["a", "q1..q2"], [1, 2, 3]),
    "points in names": (numbered("arm.joint#.x"), "arm.joint1.x..arm.joint3.x", [1, 2, 3]),
}


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("quantity", ["position", "velocity", "effort", "current", "measured_position"])
def test_lists_in_the_order_of_the_joints(case: str, quantity: str, tmp_path: Path) -> None:
    names, given, expected = LISTS[case]
    path = table_of(tmp_path, names)
    assert columns_of(path, quantity, {quantity: given}) == expected
    one = {quantity: given, f"elbow/{quantity}": names[0]}
    for columns in (one, dict(reversed(one.items()))):  # what is given of one joint goes first
        assert columns_of(path, quantity, columns) == [expected[0], 1, expected[2]]


def test_what_is_guessed_beside_a_name_is_said(tmp_path: Path) -> None:
    path = table_of(tmp_path, [*numbered("i#"), "x"])
    given: dict[str, Any] = {"columns": {"elbow/effort": "x"}, "gains": {"effort": "2 N*m/A"}}
    log = log_of(path, "effort", **given)
    np.testing.assert_array_equal(log.values[0], [2, 8, 6])
    assert log.notes == (
        "i1,i3 are currents; times their gains they are the effort",
        "i1,i3 are taken as the current of shoulder, wrist, in this order; to be certain, give --column effort=i1..i3",
    )


def test_a_list_of_the_only_joint(tmp_path: Path) -> None:
    path = table_of(tmp_path, ["a", "a,b", "q1..q2"])
    for k, name in enumerate(("a", "a,b", "q1..q2"), 1):
        assert columns_of(path, "position", {"position": name}, ("elbow",)) == [k]


@pytest.mark.parametrize(
    "columns",
    [
        {"position": "q1..q2"}, {"position": "q1,q2,q4"}, {"position": "q1..q9"}, {"position": "q1..x3"},
        {"positon": "q1..q3"}, {"position": []}, {"elbow": "q1..q3"},
    ],
    ids=str,
)  # fmt: skip
def test_lists_that_are_wrong(columns: dict[str, Any], tmp_path: Path, said: Any) -> None:
    path = table_of(tmp_path, ["q1", "q2", "q3"])
    said(refusal(NamedColumns.of, open_table(path), JOINTS, TableOptions({}, columns, None, KEYS)))


# --- gains ---


def log_of(path: Path, quantity: str, dof: str = "rad", **options: Any) -> JointLog:
    given = TableOptions(keys=KEYS, **options)
    of = NamedColumns.of(open_table(path), JOINTS, given, by_order=True)
    columns = of.required(JOINTS, quantity)
    return read_log(of, [MeasuredColumn(j, quantity, k, dof) for j, k in zip(JOINTS, columns, strict=True)])


EFFORTS = numbered("tau#")
GAINS: dict[str, tuple[list[str], str, dict[str, Any], list[float]]] = {
    "one for all": (EFFORTS, "effort", {"gains": {"effort": 2}}, [2, 4, 6]),
    "signs": (EFFORTS, "effort", {"gains": {"effort": "1,-1,1"}}, [1, -2, 3]),
    "a list": (EFFORTS, "effort", {"gains": {"effort": [1, "-2", 0.5]}}, [1, -4, 1.5]),
    "one joint": (EFFORTS, "effort", {"gains": {"elbow/effort": -3}}, [1, -6, 3]),
    "one joint among all": (EFFORTS, "effort", {"gains": {"elbow/effort": -3, "effort": 2}}, [2, -6, 6]),
    "of currents": (numbered("i#"), "effort", {"gains": {"effort": "2,3,4 N*m/A"}}, [2, 6, 12]),
    "of currents in mA": (numbered("i# [mA]"), "effort", {"gains": {"effort": "2,3,4 N*m/A"}}, [2e-3, 6e-3, 12e-3]),
    "per mA": (numbered("i#"), "effort", {"gains": {"effort": "2,3,4 N*m/mA"}}, [2, 6, 12]),
    "per mA of A": (numbered("i# [A]"), "effort", {"gains": {"effort": "2,3,4 mNm/mA"}}, [2, 6, 12]),
    "of currents, beside efforts": ([*numbered("i#"), *EFFORTS], "effort", {"gains": {"effort": "1 Nm/A"}}, [1, 2, 3]),
    "of named columns": (
        ["a", "b", "c"], "effort", {"columns": {"effort": "c,b,a"}, "gains": {"effort": "2,3,4 Nm/A"}}, [6, 6, 4],
    ),
    "of a unit that is given": (
        numbered("i#"), "effort", {"units": {"current": "mA"}, "gains": {"effort": "2 Nm/A"}}, [2e-3, 4e-3, 6e-3],
    ),
    "of volts": (
        ["a", "b", "c"], "effort", {"columns": {"effort": "a,b,c"}, "gains": {"effort": "2 N*m/V"}}, [2, 4, 6],
    ),
    "counts": (numbered("q#"), "position", {"gains": {"position": "0.5,-0.5,0.25 deg"}}, [0.5, -1.0, 0.75]),
    "a ratio and degrees": (
        numbered("q#"), "position", {"units": {"position": "deg"}, "gains": {"position": "0.5,-0.5,0.25"}},
        [0.5, -1.0, 0.75],
    ),
    "counts of speed": (numbered("qd#"), "velocity", {"gains": {"velocity": "3 deg/s"}}, [3, 6, 9]),
    "an amplifier": (numbered("i#"), "current", {"gains": {"current": "2 A/V"}}, [2, 4, 6]),
}  # fmt: skip


@pytest.mark.parametrize("case", GAINS)
def test_gains(case: str, tmp_path: Path) -> None:
    names, quantity, options, expected = GAINS[case]
    log = log_of(table_of(tmp_path, names), quantity, **options)
    degrees = np.pi / 180 if quantity in ("position", "velocity") else 1.0
    np.testing.assert_allclose(log.values, np.tile(np.array(expected) * degrees, (30, 1)), rtol=1e-14)
    assert ("currents; times their gains they are the effort" in str(log.notes)) == case.startswith(
        ("of cur", "per", "of a u")
    )


@pytest.mark.parametrize(
    ("quantity", "options"),
    [
        ("effort", {"gains": {"effort": "1,2"}}), ("effort", {"gains": {"effort": "1,2,3 A"}}),
        ("effort", {"gains": {"effort": "1,2,3 Nm/parsec"}}), ("effort", {"gains": {"effort": "two"}}),
        ("effort", {"gains": {"effort": 0}}), ("effort", {"gains": {"effort": "nan"}}),
        ("effort", {"gains": {"efort": 1}}), ("effort", {"gains": {"wrist/efort": 1}}),
        ("effort", {"gains": {"wrst/effort": 1}}), ("effort", {"gains": {"elbow/effort": "1,2"}}),
        ("effort", {"gains": {"effort": "2 N/A"}}),
        ("effort", {"gains": {"effort": "2 Nm/V"}, "units": {"effort": "A"}}),
        ("effort", {"gains": {"effort": "2 Nm"}, "units": {"effort": "A"}}),
        ("position", {"gains": {"t": 2}}), ("effort", {"gains": {"effort": []}}),
    ],
    ids=str,
)  # fmt: skip
def test_gains_that_are_wrong(quantity: str, options: dict[str, Any], tmp_path: Path, said: Any) -> None:
    path = table_of(tmp_path, [*EFFORTS, *numbered("q#"), *numbered("i#")])
    said(refusal(log_of, path, quantity, **options))


def test_the_gain_of_a_linear_joint_is_per_force(tmp_path: Path) -> None:
    log = log_of(table_of(tmp_path, numbered("i#")), "effort", "m", gains={"effort": "2 N/A"})
    np.testing.assert_allclose(log.values[0], [2, 4, 6])
    assert [gain.text for gain in read_gains("1,2 mNm / mA", ("N*m", "N"))] == ["mN*m/mA"] * 2


# --- clocks of arrays ---


def saved(folder: Path, suffix: str, **arrays: Any) -> Path:
    from scipy.io import savemat

    path = folder / f"log{suffix}"
    values = {"position": np.arange(60.0).reshape(20, 3), **arrays}
    if suffix == ".npz":
        np.savez(path, **values)
    else:
        savemat(path, values)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
@pytest.mark.parametrize(
    ("arrays", "step"),
    [({"ts": 0.002}, 0.002), ({"dt": 0.5}, 0.5), ({"Ts": [[0.01]]}, 0.01), ({"fs": 250.0}, 0.004),
     ({"fs": 250, "dt": 0.004}, 0.004), ({"dt": 5}, 0.005), ({"sample_rate": [100.0]}, 0.01)],
    ids=str,
)  # fmt: skip
def test_a_time_between_rows_is_the_clock(arrays: dict[str, Any], step: float, suffix: str, tmp_path: Path) -> None:
    log = log_of(saved(tmp_path, suffix, **arrays), "position")
    np.testing.assert_allclose(log.t, step * np.arange(20), rtol=1e-12)
    np.testing.assert_array_equal(log.values, np.unwrap(np.arange(60.0).reshape(20, 3), axis=0))
    assert f"there is no column of times; '{next(iter(arrays))}' = " in log.notes[0]


def test_a_column_of_times_goes_before_a_clock(tmp_path: Path) -> None:
    t = np.arange(20) * 0.25
    for name in ("t", "time", "timestamp"):
        log = log_of(saved(tmp_path, ".npz", ts=0.002, **{name: t}), "position")
        np.testing.assert_array_equal(log.t, t)
        assert "ts" not in str(log.notes)
    path = saved(tmp_path, ".npz", ts=0.002, clock=t)
    times = times_of(open_table(path), name="clock")
    np.testing.assert_array_equal(times.seconds, t)
    assert times.notes == ()


@pytest.mark.parametrize("arrays", [{"ts": 0.0}, {"fs": np.inf}, {"ts": 0.002, "fs": 100.0}, {}], ids=str)
def test_clocks_that_are_wrong(arrays: dict[str, Any], tmp_path: Path, said: Any) -> None:
    said(refusal(log_of, saved(tmp_path, ".npz", **arrays), "position"))


# --- joints without columns ---

DOG = tuple(f"{place}_{part}" for place in ("front", "back") for part in ("hip", "thigh", "calf"))


@pytest.mark.parametrize("about", ["position", "effort"])
@pytest.mark.parametrize(("before", "behind"), [("m_", ""), ("", "_raw"), ("m_", "_act"), ("robot:", "")])
def test_what_all_names_have_alike_is_said_once(before: str, behind: str, about: str, tmp_path: Path) -> None:
    """And the columns that it gives are read."""
    names = [f"{before}{joint}{behind}" for joint in DOG]
    path = tmp_path / "dog.csv"
    path.write_text(f"t,{','.join(names)}\n0,1,2,3,4,5,6\n1,1,2,3,4,5,6\n")
    words = refusal(NamedColumns.of(open_table(path), DOG, TableOptions(), about).required, DOG, about, True)
    assert words.startswith(f"{path}:1: no columns of the {about} of 6 joints, but such as '{names[0]}', with '")
    assert "\n" not in words and all(f"'{part}'" in words for part in (before, behind) if part)
    key, _, columns = words.rpartition("; name them by ")[2].partition(": ")
    given = TableOptions(columns={key.removeprefix("columns."): columns})
    if not columns.endswith("in the order of the joints"):
        of = NamedColumns.of(open_table(path), DOG, given, about)
        assert of.required(DOG, about, True) == [1, 2, 3, 4, 5, 6]


def test_joints_without_columns_are_one_line(tmp_path: Path, said: Any) -> None:
    lines = list[str]()
    for names in (
        "fronthip,front_tigh,frontcalf,backhip,backthigh,backcalf",
        "a,b,c,d,e,f",
        "front_hip,back_hip,c,d,e,f",
    ):
        path = tmp_path / "dog.csv"
        path.write_text(f"t,{names}\n0,1,2,3,4,5,6\n1,1,2,3,4,5,6\n")
        lines.append(refusal(NamedColumns.of(open_table(path), DOG, TableOptions()).required, DOG, "position", True))
    said("\n".join(lines))


# --- the name of a joint alone, in a log ---


def test_a_joint_alone_is_its_position_and_goes_before_its_number(tmp_path: Path) -> None:
    """`q1` is the joint of that name, though it is the second one; the times are no joint's."""
    joints = ("q2", "q1", "t")
    path = table_of(tmp_path, ["q1", "q2", "q1_effort"])
    of = NamedColumns.of(open_table(path), joints, TableOptions({}, {}, None, KEYS), by_order=True)
    assert [of.column(joint, "position") for joint in joints] == [2, 1, None]
    assert [of.column(joint, "effort") for joint in joints] == [None, 3, None]
    (said,) = of.said([("q2", "position", 2), ("q1", "position", 1), ("q1", "effort", 3)])
    assert said == "q2,q1 are taken as the position; to be certain, give --column q2=q2"
    (said,) = NamedColumns.of(of.table, ("q1",), TableOptions({}, {}, None, KEYS), by_order=True).said(
        [("q1", "position", 1)]
    )
    assert said == "q1 is taken as the position; to be certain, give --column position=q1"


@pytest.mark.parametrize("name", ["elbow/position", "elbow_pos", "q_elbow", "elbow.theta"])
def test_a_joint_alone_is_nothing_beside_its_position(name: str, tmp_path: Path) -> None:
    of = NamedColumns.of(
        open_table(table_of(tmp_path, ["elbow", name])), ("elbow", "wrist"), TableOptions(), by_order=True
    )
    assert of.column("elbow", "position") == 2 and list(of.said([("elbow", "position", 2)])) == []


# --- columns of no joint ---

FOREIGN = "t,a/position,a/effort,b/position,heber/position,HEBER.x/position [deg],io,status,imu/temperature"


@pytest.mark.parametrize("known", [("a", "b"), ("a", "b", "heber"), ("a", "b", "Heber", "x")])
def test_columns_of_joints_that_are_not_there_are_said(known: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "way.csv").write_text(f"{FOREIGN}\n" + "0,0,0,0,0,0,0,0,0\n1,1,1,1,1,1,1,1,1\n")
    given = TableFile(file="way.csv").of_joints({"a": None}, known)
    notes = read_joint_table(given, tmp_path, ("a",), "position").notes
    left = [name for name in ("heber/position", "HEBER.x/position [deg]") if not {"heber", "Heber"} & {*known}]
    if "heber" in known:
        left = ["HEBER.x/position [deg]"]
    assert [all(name in note for name in left) for note in notes] == [True] * bool(left)


@pytest.mark.parametrize(
    ("names", "second", "said"),
    [
        ("t,time", 1000.0, True),
        ("t,time_ms", 1000.0, False),
        ("t,time [ms]", 1000.0, False),
        ("t,timestamp", 1.0, False),
        ("time,seconds", 2.0, True),
        ("t,ticks", 1000.0, False),
    ],
)
def test_two_columns_of_times_of_other_lengths_are_said(names: str, second: float, said: bool, tmp_path: Path) -> None:
    rows = "".join(f"{t},{second * t},{t}\n" for t in (0.0, 0.5, 1.0))
    (tmp_path / "way.csv").write_text(f"{names},a\n{rows}")
    notes = read_joint_table(TableFile(file="way.csv"), tmp_path, ("a",), "position").notes
    assert ["are both times" in note for note in notes] == [True] * said
