"""Even rows out of uneven logs: the motion is the recorded one, whatever jitter, gaps and rubbish there are."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from cosim.core.tables import open_table
from cosim.core.tables.even_rows import LONG, EvenRows, even_rows, is_even, means_between, typical_interval
from cosim.core.tables.joint_columns import NamedColumns
from cosim.core.tables.jumps import spikes
from cosim.core.tables.log import JointLog, MeasuredColumn, read_log
from cosim.core.tables.options import TableOptions
from cosim.core.tables.rubbish import RowPlaces
from tests.kit.refusals import refusal
from tests.tables.uneven_logs import FORMATS, GAPS, JITTERS, RUBBISH, UnevenLog, position, position_mean, written

CASES = [
    case
    for case in itertools.product(JITTERS, GAPS, RUBBISH, FORMATS)
    if case[2] != "cut lines" or case[3] == ".csv"
]  # fmt: skip


def log_of(path: Path) -> JointLog:
    of = NamedColumns.of(open_table(path), ("pivot",), TableOptions())
    wanted = [("position", "rad"), ("effort", "rad")]
    columns = [MeasuredColumn("pivot", what, of.required(["pivot"], what)[0], unit) for what, unit in wanted]
    return read_log(of, columns)


def rows_of(log: UnevenLog) -> tuple[JointLog, EvenRows]:
    found = log_of(log.path)
    return found, even_rows(found.t, found.values, found.places.row, str(log.path))


@pytest.mark.parametrize(("jitter", "gaps", "rubbish", "suffix"), CASES)
def test_the_motion_is_the_recorded_one(jitter: str, gaps: str, rubbish: str, suffix: str, tmp_path: Path) -> None:
    log = written(tmp_path, jitter, gaps, rubbish, suffix)
    found, rows = rows_of(log)
    np.testing.assert_allclose(found.t, log.t, rtol=0.0, atol=1e-12)
    if log.bad:
        (note,) = (note for note in found.notes if RUBBISH[rubbish].word in note)
        assert note.startswith(f"{len(log.bad)} row")
        numbers = note.rpartition(": line" if suffix == ".csv" else ": row")[2]
        ranges = [part.split(" to ") for part in numbers.removeprefix("s").split(", ")]
        assert [n for ends in ranges for n in range(int(ends[0]), int(ends[-1]) + 1)] == log.bad
    else:
        assert found.notes == ()
    if is_even(log.t):
        np.testing.assert_array_equal(rows.t, found.t)
        np.testing.assert_array_equal(rows.values, found.values)
        assert (rows.window, rows.gaps, rows.notes) == (0.0, (), ())
        return
    half = 0.5 * rows.window
    np.testing.assert_allclose(np.diff(rows.t), rows.window, rtol=1e-9)
    assert rows.window >= 2.0 * np.median(np.diff(log.t)) * (1 - 1e-5)
    known = np.ones(len(rows.t), dtype=bool)
    for begin, end in rows.gaps:
        known &= (rows.t + half < begin) | (rows.t - half > end)
    error = np.abs(rows.values[:, 0] - position_mean(rows.t - half, rows.t + half))
    # a line over an interval d strays by q̈ d² / 8 at most
    begins, ends = (np.searchsorted(log.t, rows.t + side) for side in (-half, half))
    steps = np.diff(log.t)
    d = np.array([steps[max(a - 1, 0) : b].max() for a, b in zip(begins, ends, strict=True)])
    assert (error <= np.abs(position(log.t, 2)).max() * d**2 / 8 + 1e-8)[known].all()
    longest = LONG * typical_interval(steps)
    inside = [(a, b) for a, b in itertools.pairwise(log.t) if b - a > longest]
    np.testing.assert_allclose(np.reshape(rows.gaps, (-1, 2)), np.reshape(inside, (-1, 2)), atol=1e-12)
    assert len(rows.gaps) >= len(GAPS[gaps])
    assert any("uneven" in note for note in rows.notes)
    assert any(" gap" in note for note in rows.notes) == bool(rows.gaps)


def test_means_are_exact() -> None:
    """Of straight lines between rows, by quadrature piece by piece."""
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.01, 1.0, 40))
    values = rng.normal(size=(40, 2)) + np.array([0.0, 1e3])
    edges = np.array([t[0], t[0] + 0.001, 3.3, t[7], t[9], t[9] + 2.0, t[-1]])
    found = means_between(edges, t, values)
    for k, (a, b) in enumerate(itertools.pairwise(edges)):
        for column in range(2):
            line = lambda x, c=column: np.interp(x, t, values[:, c])  # noqa: E731
            area = quad(line, a, b, points=t[(t > a) & (t < b)], limit=200)[0]
            assert found[k, column] == pytest.approx(area / (b - a), rel=1e-10)


def test_the_pass_band() -> None:
    """−3 dB at 0.443 / T, of many rows per mean."""
    t = np.arange(0.0, 40.0, 1e-3)
    edges = np.arange(0.0, 39.9, 0.1)
    frequency = 0.443 / 0.1
    means = means_between(
        edges, t, np.column_stack([np.sin(2 * np.pi * frequency * t), np.cos(2 * np.pi * frequency * t)])
    )
    np.testing.assert_allclose(np.hypot(*means.T), np.sqrt(0.5), rtol=1e-3)


def test_the_step_of_bursts_is_the_one_of_their_pauses() -> None:
    assert typical_interval(np.tile([0.001, 0.001, 0.001, 0.007], 50)) == 0.007
    assert typical_interval(np.tile([0.010, 0.010, 0.012], 50)) == 0.010
    assert typical_interval(np.array([0.01] * 20 + [3600.0])) == 0.01  # a gap is no pause


def places(n: int) -> RowPlaces:
    return RowPlaces(np.arange(2, n + 2), "line")


def test_a_log_with_too_many_rows_missing(said: Any) -> None:
    t = np.arange(1000) * 0.01
    one, many = t[(t < 3.0) | (t > 5.5)], t[(t % 1.0) < 0.7]
    for times in (one, many, np.concatenate([t, t + 3600.0])):
        rows = np.zeros((len(times), 1))
        said(refusal(even_rows, times, rows, places(len(times)).row, "log.csv"))


def test_what_is_said_of_uneven_rows(said: Any) -> None:
    t = np.cumsum(np.random.default_rng(0).choice([0.01, 0.012], 2000))
    for times in (t, t[(t < 3.0) | (t > 3.4)], t[((t < 3.0) | (t > 3.4)) & ((t < 9.0) | (t > 9.1))]):
        found = even_rows(times, np.zeros((len(times), 1)), places(len(times)).row, "log.csv")
        for note in found.notes:
            said(note)


MOTIONS = {
    "at rest": lambda t: 0.0 * t,
    "quantised": lambda t: np.round(np.sin(t) / 1e-3) * 1e-3,
    "a step": lambda t: np.where(t < 5.0, 0.0, 3.0),
    "a rebound": lambda t: np.abs(4.0 * (t - 5.0)),
    "a fast turn after a rest": lambda t: np.where(np.abs(t - 5.0) < 0.2, 40.0 * (0.04 - (t - 5.0) ** 2), 0.0),
    "noise": lambda t: np.random.default_rng(1).normal(0.0, 1e-3, len(t)),
    "one count to and fro": lambda t: np.where(np.arange(len(t)) % 400 == 7, 1e-3, 0.0),
    "a vibration after a rest": lambda t: np.where(np.abs(t - 5.0) < 0.1, (-1.0) ** np.arange(len(t)), 0.0),
    "turns": lambda t: np.mod(9.0 * t, 2.0 * np.pi),
    "turns to and fro": lambda t: np.mod(np.pi + 0.01 * np.sin(9.0 * t) + np.pi, 2.0 * np.pi) - np.pi,
    "an angle at its border": lambda t: np.where(np.random.default_rng(2).uniform(size=len(t)) < 0.02, -3.14, 3.14),
    "rough": lambda t: np.cumsum(np.random.default_rng(3).standard_t(3, len(t))) * 1e-3,
}


@pytest.mark.parametrize("name", MOTIONS)
def test_no_motion_is_a_spike_and_a_spike_is_none(name: str) -> None:
    t = np.arange(1000) * 0.01
    q = np.column_stack([MOTIONS[name](t), np.sin(t)])
    turning = np.array([True, True])
    assert not spikes(t, q, turning).any()
    for rows in ([400], [400, 401], [100, 400, 900]):
        for size in (-1e5, 100.0, 40.0):
            spoiled = q.copy()
            spoiled[rows, 1] += size
            assert list(np.flatnonzero(spikes(t, spoiled, turning).any(axis=1))) == rows


def test_a_log_of_rubbish_is_refused(tmp_path: Path, said: Any) -> None:
    log = written(tmp_path, "jitter", "none", "none", ".csv")
    head, *rows = log.path.read_text().splitlines()
    count = len(rows) // 15
    for change in (lambda row: row.rpartition(",")[0], lambda row: row.rpartition(",")[0] + ",1e99"):
        spoiled = [change(row) if k < count else row for k, row in enumerate(rows)]
        log.path.write_text("\n".join([head, *spoiled]))
        said(refusal(log_of, log.path))
    log.path.write_text("\n".join([head, *rows[:50], rows[50].rpartition(",")[0] + ",off", *rows[51:]]))
    said(refusal(log_of, log.path))
