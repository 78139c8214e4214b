"""Logs of a known motion whose rows are uneven, have gaps and rubbish among them, in all formats of tables."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

DURATION = 12.0  # s
STEP = 0.01  # s between rows, in the mean
FREQUENCIES, AMPLITUDES = (0.31, 0.83, 1.7), (0.8, 0.4, 0.1)  # Hz, rad
COLUMNS = ("pivot/position", "pivot/effort")


def position(t: np.ndarray, derivative: int = 0) -> np.ndarray:
    """Or its derivatives by time."""
    of = zip(FREQUENCIES, AMPLITUDES, strict=True)
    return sum(
        (a * (2 * np.pi * f) ** derivative * np.sin(2 * np.pi * f * t + derivative * np.pi / 2) for f, a in of), 0 * t
    )


def effort(t: np.ndarray) -> np.ndarray:
    return 3.0 * np.sin(2 * np.pi * 0.5 * t) + 1.0


def position_mean(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Of the motion itself, by its antiderivative."""

    def integral(t: np.ndarray) -> np.ndarray:
        of = zip(FREQUENCIES, AMPLITUDES, strict=True)
        return sum((-a / (2 * np.pi * f) * np.cos(2 * np.pi * f * t) for f, a in of), 0 * t)

    return (integral(end) - integral(begin)) / (end - begin)


# --- times ---


def _even(rng: np.random.Generator) -> np.ndarray:
    return np.arange(round(DURATION / STEP)) * STEP


def _jitter(rng: np.random.Generator) -> np.ndarray:
    return np.cumsum(rng.uniform(0.8, 1.3, round(DURATION / STEP)) * STEP)


def _bursts(rng: np.random.Generator) -> np.ndarray:
    """Four rows 2.5 ms apart, and a pause, as programs without real time write them."""
    return (np.arange(round(DURATION / (4 * STEP)))[:, None] * 4 * STEP + np.arange(4) * 0.25 * STEP).ravel()


def _whole_ms(rng: np.random.Generator) -> np.ndarray:
    """10 and 12 ms, as a controller of 500 Hz gives them."""
    return np.cumsum(np.where(rng.uniform(size=round(DURATION / STEP)) < 0.7, 0.010, 0.012))


JITTERS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "even": _even, "jitter": _jitter, "bursts": _bursts, "10 and 12 ms": _whole_ms,
}  # fmt: skip
GAPS: dict[str, tuple[tuple[float, float], ...]] = {
    "none": (),
    "one": ((4.0, 4.4),),
    "many": ((1.0, 1.3), (3.0, 3.2), (7.5, 8.2)),
}


class Rubbish(NamedTuple):
    """rows: how many are lost; change: of a table (k, 3) at these rows; word: of the note that says so."""

    rows: tuple[int, ...]
    change: Callable[[np.ndarray, list[int]], None]
    word: str = ""


def _set(column: int, value: float) -> Callable[[np.ndarray, list[int]], None]:
    def change(table: np.ndarray, rows: list[int]) -> None:
        table[rows, column] = value

    return change


def _shifted(table: np.ndarray, rows: list[int]) -> None:
    table[rows, 1] += 300.0


RUBBISH: dict[str, Rubbish] = {
    "none": Rubbish((), lambda table, rows: None),
    "nan": Rubbish((50, 51, 700), _set(1, np.nan), "without finite numbers or cut off"),
    "infinite": Rubbish((0, 500), _set(2, np.inf), "without finite numbers or cut off"),
    "absurd": Rubbish((*range(8), 600), _set(2, 1e282), "with absurd numbers"),
    "absurd times": Rubbish((20,), _set(0, -1e282), "with absurd numbers"),
    "spikes": Rubbish((90, 91, 640), _shifted, "with positions that no motion has"),
    "cut lines": Rubbish((60, 61, 62, 800), lambda table, rows: None, "without finite numbers or cut off"),
}


# --- files ---


def _csv(path: Path, table: np.ndarray, cut: list[int]) -> None:
    rows = [",".join(f"{value:.12g}" for value in row) for row in table]
    for row in cut:
        rows[row] = rows[row][: rows[row].rindex(",")]
    path.write_text("\n".join([",".join(("t", *COLUMNS)), *rows, ""]))


def _npz(path: Path, table: np.ndarray, cut: list[int]) -> None:
    np.savez(path, **dict(zip(("t", *COLUMNS), table.T, strict=True)))  # type: ignore[arg-type]


def _mat(path: Path, table: np.ndarray, cut: list[int]) -> None:
    from scipy.io import savemat

    savemat(path, {"t": table[:, 0], "position": table[:, 1], "effort": table[:, 2]})


def _parquet(path: Path, table: np.ndarray, cut: list[int]) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = {name: pyarrow.array(values) for name, values in zip(("t", *COLUMNS), table.T, strict=True)}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


FORMATS: dict[str, Callable[[Path, np.ndarray, list[int]], None]] = {".csv": _csv, ".npz": _npz, ".mat": _mat}
if importlib.util.find_spec("pyarrow"):
    FORMATS[".parquet"] = _parquet


class UnevenLog(NamedTuple):
    """path: of the file; t: the times of the sound rows; bad: the lines, or rows, of the others."""

    path: Path
    t: np.ndarray
    bad: list[int]


def written(folder: Path, jitter: str, gaps: str, rubbish: str, suffix: str, seed: int = 0) -> UnevenLog:
    rng = np.random.default_rng(seed)
    t = JITTERS[jitter](rng)
    for begin, end in GAPS[gaps]:
        t = t[(t < begin) | (t > end)]
    t = np.round(t, 9)
    table = np.column_stack([t, position(t), effort(t)])
    rows = list(RUBBISH[rubbish].rows)
    RUBBISH[rubbish].change(table, rows)
    path = folder / f"log{suffix}"
    FORMATS[suffix](path, table, rows if rubbish == "cut lines" else [])
    return UnevenLog(path, np.delete(t, rows), [row + (2 if suffix == ".csv" else 1) for row in rows])
