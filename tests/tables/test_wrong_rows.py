"""What is said of wrong times and cells: the row that is wrong, once for many that are wrong in the same way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cosim.core.errors import InputErrors
from cosim.core.tables import open_table
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.joint_table import TableFile, read_joint_table
from cosim.core.tables.options import TableOptions
from cosim.plugins.trajectories import waypoints
from tests.kit.refusals import refusal

T = 0.01 * np.arange(200.0)


def written(folder: Path, text: str) -> Path:
    (folder / "way.csv").write_text(text)
    return folder / "way.csv"


def rows(t: np.ndarray) -> str:
    return "t,a\n" + "".join(f"{at:.6g},{0.001 * k:.6g}\n" for k, at in enumerate(t))


def refused(folder: Path, text: str, joints: tuple[str, ...] = ("a",)) -> str:
    written(folder, text)
    words = refusal(read_joint_table, TableFile(file="way.csv"), folder, joints, "position")
    return words.replace(f"{folder}/way.csv", "")


@pytest.mark.parametrize(
    ("row", "value"), [(80, 80.0), (80, -5.0), (80, 0.2), (80, 0.999), (0, 5.0), (199, 0.5), (1, 7.0), (198, 0.0)]
)
def test_the_row_whose_time_is_wrong_is_named(row: int, value: float, tmp_path: Path) -> None:
    t = T.copy()
    t[row] = value
    assert refused(tmp_path, rows(t)).startswith(f":{row + 2} t: time must increase, but {value:.6g} s is ")


@pytest.mark.parametrize(("row", "value"), [(199, 2000.0), (0, -5.0), (0, -100.0), (199, 2.5), (199, 20.0)])
def test_times_at_the_ends(row: int, value: float, tmp_path: Path) -> None:
    """A rest of ten times the motion may be at its end."""
    t = T.copy()
    t[row] = value
    written(tmp_path, rows(t))
    doubts = waypoints.load(waypoints.Params(file="way.csv"), ("a",), tmp_path, np.zeros(1)).doubts
    far = abs(value) > 40.0
    assert [line.partition(" t: ")[0].rpartition(":")[2] for line in doubts] == [str(row + 2)] * (far + (value < 0.0))


def test_what_is_missing_is_said_together(tmp_path: Path) -> None:
    of_joints, of_times = refused(tmp_path, "x,y\n1,2\n3,4\n", ("a", "b")).splitlines()
    assert "no columns 'a', 'b'" in of_joints and "no column of times" in of_times


@pytest.mark.parametrize("cell", ['"1,234.5"', "x", "NA", "-", "#DIV/0!", "", "nan", "0x1", "inf"])
@pytest.mark.parametrize("count", [1, 3, 4, 24, 150])
def test_many_cells_that_are_wrong_alike_are_one_line(cell: str, count: int, tmp_path: Path) -> None:
    good = "".join(f"{k},{k}.5\n" for k in range(200))
    lines = refused(tmp_path, "t,a\n" + good + "".join(f"{k},{cell}\n" for k in range(200, 200 + count))).splitlines()
    assert len(lines) == (count if count <= 3 else 1)
    got = cell.strip('"') or "an empty cell"
    assert lines[0].startswith(":202 a: ") and got in lines[0]
    last = 201 + min(count, 100)
    numbers = "100 rows or more" if count > 100 else f"{count} rows"
    assert count <= 3 or lines[0].endswith(f"; so it is in {numbers}, lines 202 to {last}")


def test_cells_that_are_wrong_in_several_ways_have_a_line_each(tmp_path: Path) -> None:
    text = "t,a,b\n" + "".join(f"{k},{k}.5,{k}.5\n" for k in range(9)) + "".join(f"{k},x,\n" for k in range(9, 14))
    assert refused(tmp_path, text, ("a", "b")).splitlines() == [
        ":11 a: expected a number, got 'x'; so it is in 5 rows, lines 11 to 15",
        ":11 b: expected a finite number, got an empty cell; so it is in 5 rows, lines 11 to 15",
    ]


@pytest.mark.parametrize(
    ("of_joint", "of_time", "of_it"), [("joint", "t", "position"), ("Name", "time [s]", "pos [deg]")]
)
def test_a_row_for_each_joint_is_to_be_pivoted(of_joint: str, of_time: str, of_it: str, tmp_path: Path) -> None:
    text = f"{of_time},{of_joint},{of_it}\n" + "".join(f"{k},a,0\n{k},b,1\n" for k in range(5))
    words = refused(tmp_path, text, ("a", "b"))
    assert f"pivot(index='{of_time}', columns='{of_joint}', values='{of_it}')" in words
    assert "pivot" not in refused(tmp_path, text, ("c", "d"))


@pytest.mark.parametrize("joint", ["elbow", "left elbow", "a;b", "$x"])
def test_names_with_blanks_are_quoted_in_hints(joint: str, tmp_path: Path) -> None:
    path = written(tmp_path, "t,x\n0,0\n1,1\n")
    of = NamedColumns.of(open_table(path), (joint,), TableOptions(keys=("--unit ", "--column ", "--topic", "--gain ")))
    error = of.error_of([joint], "position")
    assert not isinstance(error, InputErrors)
    text = f"{joint}=COLUMN" if joint == "elbow" else f"'{joint}=COLUMN'"
    assert error.what.endswith(f"by --column {text}")
