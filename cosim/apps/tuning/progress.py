"""What `cosim tune gains` shows while it searches."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cosim.apps.tuning.session import Progress, TuningSession
from cosim.apps.tuning.trials import Trial
from cosim.output import console


@contextmanager
def shown_progress(name: str) -> Iterator[Progress]:
    """On a terminal one line that changes; in a pipe a line for each better trial and each tenth of the session."""
    terminal, left = sys.stderr.isatty(), TimeLeft()
    seen = [-1, 0]  # the best trial, and the tenths

    with console.busy(f"preparing {name}") as prepared:

        def show(session: TuningSession) -> None:
            prepared()
            done, total, best = len(session.trials) - 1, session.request.trials, session.found
            line = f"{done}/{total} trials  {_best_text(best)}{left.text(done, total)}"
            if terminal:
                console.write_line(f"tuning {name}: {line}")
                return
            now = [-1 if best is None else best.number, 10 * done // total]
            if now != seen:
                seen[:] = now
                print(line, flush=True)

        try:
            yield show
        finally:
            prepared()
            if terminal:
                console.write_line("")


class TimeLeft:
    """Of a session, by the rate of its trials since the first batch, in which the rig is compiled."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None  # trials that were done, and the time [s]

    def text(self, done: int, total: int) -> str:
        """After two spaces; empty where it is not known, and at the end."""
        now = time.monotonic()
        if self._first is None:
            self._first = done, now
        trials, seconds = done - self._first[0], now - self._first[1]
        return f"  {in_words(seconds * (total - done) / trials)} left" if trials and done < total else ""


def in_words(seconds: float) -> str:
    """`40 s`, `12 min` or `2 h 5 min`."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60.0)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _best_text(best: Trial | None) -> str:
    return "none holds all limits yet" if best is None else f"best {best.number}: cost {best.outcome.cost:.6g}"
