"""Spikes and steps in tables: none in shapes that are wanted, each that is put into a motion, with its row."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim.core.tables import open_table
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.jumps import displaced, spikes, steps
from cosim.core.tables.log import MeasuredColumn, read_log
from cosim.core.tables.options import TableOptions
from cosim.plugins.trajectories import waypoints
from tests.kit.refusals import refusal

SAMPLED = np.arange(0.0, 4.0, 0.01)
SPARSE = np.arange(0.0, 40.0, 1.0)
TURNING, SLIDING = {"j": "revolute"}, {"j": "prismatic"}


def minimum_jerk(t: np.ndarray) -> np.ndarray:
    x = np.clip((t - 0.5) / 3.0, 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x**2)


def bang_bang(t: np.ndarray) -> np.ndarray:
    """The acceleration is 1 and -1 in turn."""
    x = t % 2.0
    return np.where(x < 1.0, 0.5 * x**2, 1.0 - 0.5 * (2.0 - x) ** 2) + t // 2.0


def trapezoid(t: np.ndarray) -> np.ndarray:
    return np.interp(t, [0.0, 0.7, 1.9, 2.8, 4.0], [0.0, 0.0, 1.0, 1.0, 0.2])


def chirp(t: np.ndarray) -> np.ndarray:
    return np.sin(2.0 * np.pi * (0.1 + 4.0 * t) * t)


def encoder(t: np.ndarray) -> np.ndarray:
    """A slow motion in counts of 10 bit."""
    return np.round(0.2 * np.sin(t) * 1024 / 6.28) * 6.28 / 1024


def noisy(t: np.ndarray) -> np.ndarray:
    return np.sin(t) + 1e-3 * np.random.default_rng(0).standard_normal(len(t))


def square(t: np.ndarray) -> np.ndarray:
    return np.sign(np.sin(2.0 * np.pi * 0.8 * t + 0.1))


def stairs(t: np.ndarray) -> np.ndarray:
    return 0.3 * np.floor(t / 0.5)


def sawtooth(t: np.ndarray) -> np.ndarray:
    return 0.4 * ((t / 0.9) % 1.0)


def rest(t: np.ndarray) -> np.ndarray:
    return 0.4 + 0.0 * t


def flicker(t: np.ndarray) -> np.ndarray:
    """The last bit of an encoder at rest."""
    return 0.006 * (np.random.default_rng(1).uniform(size=len(t)) < 0.03)


def to_and_fro(t: np.ndarray) -> np.ndarray:
    """Places of a robot that fetches something once in a while."""
    return np.where(np.arange(len(t)) % 9 == 4, 1.0, 0.0) + 0.01 * np.arange(len(t))


def ramp(t: np.ndarray) -> np.ndarray:
    return 0.4 * t


MOTIONS = (minimum_jerk, bang_bang, trapezoid, chirp, encoder, noisy, ramp)
SHAPES: dict[str, tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]] = {
    **{f.__name__: (SAMPLED, f) for f in (*MOTIONS, square, stairs, sawtooth, rest, flicker)},
    "sparse places": (SPARSE, to_and_fro),
    "sparse stairs": (SPARSE, stairs),
    "few rows": (np.arange(0.0, 0.15, 0.01), square),
    "with a pause": (np.concatenate([SAMPLED[:200], SAMPLED[200:] + 2.0]), chirp),
}


def written(folder: Path, t: np.ndarray, values: np.ndarray, name: str = "t,j") -> Path:
    path = folder / "way.csv"
    np.savetxt(path, np.column_stack([t, values]), "%.9g", ",", header=name, comments="")
    return path


def doubts(folder: Path, t: np.ndarray, values: np.ndarray, kinds: dict[str, str]) -> list[str]:
    path = written(folder, t, values)
    params = waypoints.Params(file=path.name).of_joints(kinds)
    return [doubt.removeprefix(str(path)) for doubt in waypoints.load(params, ("j",), folder, values[:1]).doubts]


@pytest.mark.parametrize("kinds", [TURNING, SLIDING, {}], ids=["turning", "sliding", "unknown"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_that_are_wanted(shape: str, kinds: dict[str, str], tmp_path: Path) -> None:
    t, of = SHAPES[shape]
    assert doubts(tmp_path, t, of(t), kinds) == []


FAULTS = {
    "spike": lambda q, row: np.where(np.arange(len(q)) == row, q + 0.7, q),
    "spike of two rows": lambda q, row: np.where(np.arange(len(q)) // 2 == row // 2, q - 0.7, q),
    "step": lambda q, row: np.where(np.arange(len(q)) >= row, q - 1.7, q),
    "steps of two sizes": lambda q, row: np.where(np.arange(len(q)) >= row, q + 0.9, q) + (np.arange(len(q)) > 300),
}  # fmt: skip
ROWS = {"spike": {100}, "spike of two rows": {100, 101}, "step": {100}, "steps of two sizes": {100, 301}}


@pytest.mark.parametrize("kinds", [TURNING, SLIDING], ids=["turning", "sliding"])
@pytest.mark.parametrize(
    ("motion", "fault"),
    [
        (motion, fault)
        for motion, fault in itertools.product((*MOTIONS, rest), FAULTS)
        if motion is not chirp
        and (motion is not rest or fault.startswith("spike"))  # a step between two rests is wanted
    ],
)
def test_faults_are_found_with_their_rows(
    motion: Callable[[np.ndarray], np.ndarray], fault: str, kinds: dict[str, str], tmp_path: Path
) -> None:
    found = doubts(tmp_path, SAMPLED, FAULTS[fault](motion(SAMPLED), 100), kinds)
    assert {int(line.split()[0].strip(":")) for line in found} == {row + 2 for row in ROWS[fault]}  # lines
    word = "a spike" if fault.startswith("spike") else "stays there"
    assert all(word in line and " j: joint 'j'" in line for line in found)


# --- faults that are small beside the motion ---

COSINE = 0.01 * np.arange(201.0)  # s
SLIDE = 0.3 * (1.0 - np.cos(0.5 * np.pi * COSINE))  # m: a row is 4.7 mm behind the one before at most
PLACES = (8, 37, 60, 100, 140, 180)


def planned() -> dict[str, np.ndarray]:
    """Shapes that planners, encoders and editors make."""
    speed = np.interp(COSINE, [0.0, 0.333, 0.6, 1.2, 1.21, 1.7], [0.0, 0.0, 0.5, 0.5, 0.3, 0.0])
    places = np.array([0.0, 0.3, 0.31, 0.8, 0.83, 1.2, 1.21, 2.0])
    return {
        "trapezoid of velocity": np.cumsum(speed) * 0.01,
        "rounded trapezoid of velocity": np.round(np.cumsum(speed) * 0.01, 3),
        "quick bang-bang": np.cumsum(np.cumsum(np.sign(np.sin(20.0 * COSINE + 0.1)))) * 1e-4,
        "encoder of 7 bit": np.round(SLIDE * 128) / 128,
        "encoder of 16 bit": np.round(SLIDE * 65536) / 65536,
        "one digit": np.round(SLIDE, 1),
        "two digits": np.round(SLIDE, 2),
        "three digits, slow": np.round(0.1 * SLIDE, 3),
        "float32": SLIDE.astype("f4").astype(float),
        "places": np.interp(COSINE, places, [0.0, 0.0, 0.2, 0.2, 0.5, 0.5, 0.1, 0.1]),
        "noise": SLIDE + 1e-3 * np.random.default_rng(2).standard_normal(201),
        "corners": np.abs((COSINE % 0.4) - 0.2),
        "resonance": SLIDE + 0.01 * np.sin(2.0 * np.pi * 40.0 * COSINE),
    }


@pytest.mark.parametrize("kind", planned())
def test_planned_motions_have_no_displaced_rows(kind: str) -> None:
    assert displaced(COSINE, planned()[kind]) == []


@pytest.mark.parametrize("row", PLACES)
@pytest.mark.parametrize("rows", [1, 3, 6, None], ids=["spike", "three rows", "six rows", "step"])
@pytest.mark.parametrize("size", [0.003, -0.02, 0.1, 1.0])
def test_small_faults_are_found_with_their_rows(size: float, rows: int | None, row: int, tmp_path: Path) -> None:
    index = np.arange(201)
    off = (index >= row) & (index < row + rows) if rows else index >= row
    (line,) = doubts(tmp_path, COSINE, SLIDE + size * off, SLIDING)
    words = {1: "a spike", None: "stays there"}.get(rows, f"from here to line {row + 1 + (rows or 0)}, {rows} rows")
    assert line.startswith(f":{row + 2} j: joint 'j' ") and words in line


@pytest.mark.parametrize("row", [5, 60, 140])
def test_a_jump_behind_frozen_rows(row: int, tmp_path: Path) -> None:
    frozen = SLIDE.copy()
    frozen[row : row + 40] = SLIDE[row]
    frozen[row + 40 :] += SLIDE[row] + 0.2 - SLIDE[row + 40]
    (line,) = doubts(tmp_path, COSINE, frozen, SLIDING)
    assert line.startswith(f":{row + 42} j: joint 'j' jumps by 0.2 m to ") and "stays there" in line


def test_efforts_may_jump(tmp_path: Path) -> None:
    """As columns of feedforward, and square waves of a log."""
    path = written(tmp_path, SAMPLED, square(SAMPLED), "t,j/effort")
    assert waypoints.read_waypoints(waypoints.Params(file=path.name), tmp_path, ("j",), "effort").notes == ()
    assert not spikes(SAMPLED, square(SAMPLED)[:, None], np.zeros(1, dtype=bool)).any()


@pytest.mark.parametrize("motion", [f for f in MOTIONS if f is not chirp])
def test_a_log(motion: Callable[[np.ndarray], np.ndarray], tmp_path: Path) -> None:
    """Its steps and its peaks of current are said with their lines, and stay."""
    rng = np.random.default_rng(3)
    current = np.sign(np.sin(SAMPLED)) + 0.1 * rng.standard_normal(len(SAMPLED))
    wanted = [MeasuredColumn("j", "position", 1, "rad"), MeasuredColumn("j", "current", 2, "rad")]

    def notes(q: np.ndarray, i: np.ndarray) -> tuple[str, ...]:
        path = tmp_path / "log.csv"
        np.savetxt(path, np.column_stack([SAMPLED, q, i]), "%.9g", ",", header="t,j/position,j/current", comments="")
        return read_log(NamedColumns.of(open_table(path), ("j",), TableOptions()), wanted).notes

    assert notes(motion(SAMPLED), current) == ()
    current[77] += 300.0
    assert [said.partition(":")[2] for said in notes(FAULTS["step"](motion(SAMPLED), 100), current)] == [
        " line 102; if its zero has moved there, cut the log into two",
        " line 79; they count, so take these rows out if they are none of the motion",
    ]


@pytest.mark.parametrize("size", [5.0, 20.0, 80.0])
def test_a_step_is_one_from_twenty_times_the_speed_beside_it(size: float) -> None:
    q = 0.01 * np.arange(100.0)
    q[50:] += 0.01 * (size - 1.0) * (1.0 + 1e-9)
    found = np.flatnonzero(steps(0.01 * np.arange(100.0), q[:, None], np.zeros(1, dtype=bool)))
    assert found.tolist() == ([50] if size >= 20.0 else [])


# --- another unit, and turns ---

WORDS = {"revolute": ("rad", "deg"), "continuous": ("rad", "deg"), "prismatic": ("m", "mm"), "": ("rad or m", "deg")}


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("t", [np.arange(5.0), SAMPLED], ids=["few rows", "samples"])
def test_another_unit_is_supposed_by_the_kind_of_the_joint(kind: str, t: np.ndarray, tmp_path: Path) -> None:
    joint_unit, other = WORDS[kind]
    (line,) = doubts(tmp_path, t, -100.0 * minimum_jerk(t), {"j": kind} if kind else {})
    assert f"joint 'j' goes to -100 {joint_unit}, " in line and line.endswith(f"give units: {{j: {other}}}")
    assert "wrap" not in line
    stated = written(tmp_path, t, -100.0 * minimum_jerk(t), f"t,j [{other}]")
    params = waypoints.Params(file=stated.name).of_joints({"j": kind} if kind else {})
    assert waypoints.load(params, ("j",), tmp_path, np.zeros(1)).doubts == ()


@pytest.mark.parametrize("kind", WORDS)
def test_only_what_turns_wraps(kind: str, tmp_path: Path) -> None:
    found = doubts(tmp_path, np.arange(4.0), np.array([2.0, 3.1, -3.1, -2.0]), {"j": kind} if kind else {})
    assert [line for line in found if "wrap" in line] == (found if kind != "prismatic" else [])
    assert len(found) == 1  # the slide goes 6.2 m within 1 s


def test_what_is_no_position_is_refused_with_its_row(tmp_path: Path, said: Any) -> None:
    lines = list[str]()
    for cells in ("1,1e300", "1,-1.1e6", "1e12,0"):
        (tmp_path / "way.csv").write_text(f"t,j\n0,0\n{cells}\n")
        lines.append(refusal(waypoints.read_waypoints, waypoints.Params(file="way.csv"), tmp_path, ("j",)))
    np.savez(tmp_path / "way.npz", t=np.arange(3.0), j=np.array([0.0, 1e7, 0.0]))
    lines.append(refusal(waypoints.read_waypoints, waypoints.Params(file="way.npz"), tmp_path, ("j",)))
    said("\n".join(lines))


# --- what is missing, and what is there twice ---


def test_missing_samples_are_said_where_the_joint_moves(tmp_path: Path) -> None:
    there = (SAMPLED < 1.0) | (SAMPLED > 1.4)
    (line,) = doubts(tmp_path, SAMPLED[there], ramp(SAMPLED)[there], TURNING)
    assert line.startswith(":102: no row within 0.41 s before this one, where others are 0.01 s apart; what j ")
    assert doubts(tmp_path, SAMPLED[there], rest(SAMPLED)[there], TURNING) == []


def log_of(path: Path) -> Any:
    of = NamedColumns.of(open_table(path), ("j",), TableOptions(), by_order=True)
    return read_log(of, [MeasuredColumn("j", "position", 1, "rad")])


def parts_of(order: str, t: np.ndarray) -> np.ndarray:
    """Indices of rows, in the order in which they are written."""
    rows = np.arange(len(t))
    if order == "late rows":
        rows[100:105] = rows[100:105][::-1]
    elif order == "late parts":
        rows = np.concatenate([rows[200:], rows[:200]])
    return rows[::-1] if order == "backwards" else rows


@pytest.mark.parametrize("order", ["as it is", "late rows", "late parts", "backwards"])
def test_rows_in_another_order_are_sorted(order: str, tmp_path: Path) -> None:
    rows = parts_of(order, SAMPLED)
    found = log_of(written(tmp_path, SAMPLED[rows], chirp(SAMPLED)[rows]))
    np.testing.assert_allclose(found.t, SAMPLED, atol=1e-8)
    np.testing.assert_allclose(found.values[:, 0], chirp(SAMPLED), atol=1e-8)


@pytest.mark.parametrize("begin", [0.0, 0.005, 1.0, -1.0])
@pytest.mark.parametrize("header", [False, True], ids=["", "names again"])
def test_two_logs_in_one_file_are_refused_with_the_row(begin: float, header: bool, tmp_path: Path) -> None:
    """Their rows would be mixed."""
    path = written(tmp_path, SAMPLED, chirp(SAMPLED))
    first = path.read_text()
    second = written(tmp_path, SAMPLED + begin, chirp(SAMPLED)).read_text()
    path.write_text(first + (second if header else second.partition("\n")[2]))
    words = refusal(log_of, path)
    line = len(SAMPLED) + 2 + header
    assert f" s at line {line}, and " in words and words.endswith(
        ": two logs in one file; cut it there and give both files"
    )
    path.write_text("t,j\n0,0\n1,1\nt,j\n2,2\n")
    words = refusal(waypoints.read_waypoints, waypoints.Params(file="way.csv"), tmp_path, ("j",))
    assert words.startswith(f"{path}:4: the line of names is there again")


@pytest.mark.parametrize("name", ["j [grad]", "j/position (foo)", "j [filtered]"])
def test_a_unit_that_nobody_knows_is_said(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, SAMPLED, ramp(SAMPLED), f"t,{name}")
    word, given = name.partition("[")[2].strip("]") or "foo", {"j": name}
    params = waypoints.Params(file=path.name, columns=given)
    (note,) = waypoints.read_waypoints(params, tmp_path, ("j",)).notes
    assert note.startswith(f"'{word}' behind the column '{name}' is no unit that is known, so it is taken as SI; give")
    stated = waypoints.Params(file=path.name, columns=given, units={"j": "deg"})
    found = waypoints.read_waypoints(stated, tmp_path, ("j",))
    assert found.notes == ()
    np.testing.assert_allclose(found.values[:, 0], np.deg2rad(ramp(SAMPLED)), atol=1e-9)
