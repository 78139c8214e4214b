"""Recordings that are given twice: what checks the numbers is to be another motion than the one they are found from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from cosim.apps.identification.recorded_motion import RecordedMotion
from cosim.core.errors import InputError
from cosim.core.units import show_percent
from cosim.output.output_files import identity

TOGETHER = 8  # successive rows that are equal in two recordings only if one is of the other
MOST_REPEATED = 0.2  # of the rows with a motion


def check_distinct(training: Sequence[str | Path], checks: Sequence[str | Path]) -> None:
    """Raises InputError for a file that is there twice, under whatever name."""
    known = dict[object, str | Path]()
    for path in training:
        if identity(Path(path)) in known:
            raise InputError(f"is given twice{_alias(known, path)}, and would count twice; give it once", str(path))
        known[identity(Path(path))] = path
    for path in checks:
        if identity(Path(path)) in known:
            what = f"{path} is a recording that the numbers are found from{_alias(known, path)}, and checks nothing"
            raise InputError(f"{what}; give one of another motion, such as of --excite with another --seed", "--check")


def _alias(known: Mapping[object, str | Path], path: str | Path) -> str:
    """The other name of a file, as a continuation of a sentence, or ""."""
    first = known[identity(Path(path))]
    return "" if str(first) == str(path) else f", as {first} too"


def repeated_rows(training: Sequence[RecordedMotion], checks: Sequence[RecordedMotion]) -> Iterator[str]:
    """What is said of recordings whose rows are in an earlier one too, with the same motion and the same drives."""
    earlier = list[tuple[RecordedMotion, np.ndarray]]()
    for k, motion in enumerate((*training, *checks)):
        rows = _moving_rows(motion)
        for other, known in earlier:
            share = float(np.isin(rows, known).mean()) if len(rows) else 0.0
            if share <= MOST_REPEATED:
                continue
            what = f"{show_percent(share)} of the motion of {motion.path} is in {other.path} too, row by row"
            twice = "and counts twice; leave one out" if k < len(training) else "and checks nothing; give another one"
            yield f"{what}, {twice}"
            break
        if k < len(training):
            earlier.append((motion, rows))


def _moving_rows(motion: RecordedMotion) -> np.ndarray:
    """(k,) a number for positions and drives of successive rows, of each such group in which a position changes."""
    bits = np.hstack([motion.position, motion.drive]).astype(np.float32).view(np.uint32).astype(np.uint64)
    if len(bits) < TOGETHER:
        return np.zeros(0, np.uint64)
    weights = np.random.default_rng(0).integers(1 << 63, size=(TOGETHER, bits.shape[1]), dtype=np.uint64)
    count = len(bits) - TOGETHER + 1
    sums = np.zeros(count, np.uint64)
    for k, of_row in enumerate(weights):
        sums += (bits[k : k + count] * of_row).sum(axis=1, dtype=np.uint64)
    rests = np.concatenate([[0], np.cumsum((np.diff(motion.position, axis=0) == 0.0).all(axis=1))])
    return np.unique(sums[rests[TOGETHER - 1 :] - rests[:count] < TOGETHER - 1])
