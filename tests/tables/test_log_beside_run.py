"""What is said of a log beside a run: signs, joints and quantities that do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cosim.core.tables.options import TableOptions
from cosim.rig.run.measured_log import measured_log
from tests.kit.refusals import refusal
from tests.tables.test_foreign_tables import FakeRun

T = np.arange(0.0, 4.0, 0.01)
MOTIONS = {"a": 0.3 + np.sin(T), "b": np.cos(2.3 * T), "c": 0.5 * np.sin(3.1 * T + 1.0)}
ON_COMMAND_LINE = ("--unit ", "--column ", "--topic", "--gain ")


class MovingRun(FakeRun):
    def __init__(self) -> None:
        quantities = {"position": "rad", "velocity": "rad/s", "effort": "N*m"}
        super().__init__(tuple(MOTIONS), {f"{j}/{q}": unit for j in MOTIONS for q, unit in quantities.items()})
        self.t = T

    def __getitem__(self, signal: str) -> np.ndarray:
        return MOTIONS[signal[0]]


def notes(folder: Path, table: dict[str, np.ndarray], **given: dict[str, str]) -> list[str]:
    path = written(folder, table)
    options = TableOptions(keys=ON_COMMAND_LINE, **given)  # type: ignore[arg-type]
    return list(measured_log(path, MovingRun(), options).notes)  # type: ignore[arg-type]


def written(folder: Path, columns: dict[str, np.ndarray]) -> Path:
    path = folder / "log.csv"
    rows = np.column_stack([T, *columns.values()])
    np.savetxt(path, rows, "%.9g", ",", header=",".join(["t", *columns]), comments="")
    return path


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("quantity", ["position", "velocity", "effort"])
def test_signs(quantity: str, sign: float, noise: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    of = {f"{j}/{quantity}": q + noise * rng.standard_normal(len(T)) for j, q in MOTIONS.items()}
    of[f"b/{quantity}"] *= sign
    found = notes(tmp_path, of)
    assert [f"give --gain b/{quantity}=-1" in note for note in found] == [True] * (sign < 0.0)
    if sign < 0.0:
        assert notes(tmp_path, of, gains={f"b/{quantity}": "-1"}) == []


@pytest.mark.parametrize("order", ["abc", "bac", "bca", "acb"])
def test_swapped_joints(order: str, tmp_path: Path) -> None:
    of = {f"{j}/position": MOTIONS[own] for j, own in zip(MOTIONS, order, strict=True)}
    moved = [(j, own) for j, own in zip(MOTIONS, order, strict=True) if j != own]
    found = notes(tmp_path, of)
    assert [note.split(";")[1] for note in found] == [
        f" if joints are swapped, give --column {own}/position={j}/position and so on" for j, own in moved
    ]
    columns = {f"{own}/position": f"{j}/position" for j, own in moved}
    assert notes(tmp_path, of, columns=columns) == []


def test_what_the_run_does_not_have(tmp_path: Path) -> None:
    of = {f"{j}/position": q for j, q in MOTIONS.items()}
    (note,) = notes(tmp_path, of | {"a/current": T, "b/current": T})
    assert note.startswith("the current of a, b is left out, the run has none; to compare efforts, give --gain ")
    assert notes(tmp_path, of | {"a/current": T, "heber/status": T}, gains={"a/effort": "1 N*m/A"}) == [
        "a/current is a current; times its gain it is the effort"
    ]


@pytest.mark.parametrize("unit", ["1/min", "U/min", "rev/min", "RPM", "min⁻¹"])
def test_speeds_in_turns_per_minute(unit: str, tmp_path: Path) -> None:
    path = written(tmp_path, {f"{j}/velocity [{unit}]": q * 30.0 / np.pi for j, q in MOTIONS.items()})
    log = measured_log(path, MovingRun())  # type: ignore[arg-type]
    np.testing.assert_allclose(log.values, np.column_stack([*MOTIONS.values()]), atol=1e-8)


def test_a_column_without_the_brackets_at_its_end(tmp_path: Path) -> None:
    for name in ("Winkel [deg]", "Winkel (ist)", "Winkel [Grad roh]"):
        path = written(tmp_path, {name: MOTIONS["a"], "b/position": MOTIONS["b"]})
        columns = {"a": "Winkel"}
        log = measured_log(path, MovingRun(), TableOptions(columns=columns))  # type: ignore[arg-type]
        assert list(log.units) == ["a/position", "b/position"]
    path = written(tmp_path, {"Winkel [a]": T, "Winkel [b]": T})
    words = refusal(measured_log, path, MovingRun(), TableOptions(columns={"a": "Winkel"}))
    assert "2 columns 'Winkel'" in words


def test_gains_of_joints_of_two_kinds(tmp_path: Path) -> None:
    of = {f"{j}/current": q for j, q in MOTIONS.items()}
    gains = {"effort": "2 N*m/A, 500 N*mm/A,0.5 N*m/A"}
    assert "'N*mm/A' is no unit of a gain" in refusal(notes, tmp_path, of, gains=gains)
    path = written(tmp_path, of)
    options = TableOptions(gains={"effort": "2 N*m/A, 500 mN*m/A,0.5 N*m/A"})
    log = measured_log(path, MovingRun(), options)  # type: ignore[arg-type]
    expected = np.column_stack([*MOTIONS.values()]) * [2.0, 0.5, 0.5]
    np.testing.assert_allclose(log.values, expected, atol=1e-8)
