"""The holding brake of a drive: it opens and closes some time after the drive is switched on and off."""

from __future__ import annotations

import numpy as np

from cosim.core import ops
from cosim.core.types import BRAKE, Numeric, State, param, params

LATER = 1e-9  # s, by which a time may be missed through rounding


@params
class HoldingBrake:
    effort: float = param(unit="joint effort", above=0.0, doc="at the joint, that it holds, and with which it slips")
    opens: float = param(unit="s", min=0.0, default=0.05, doc="after the drive is switched on")
    closes: float = param(unit="s", min=0.0, default=0.03, doc="after the drive is switched off")


def initial() -> State:
    """Closed, of a drive that has just been switched on: whether it is, since when [s], whether the brake is closed."""
    return {"on": np.ones(()), "since": np.zeros(()), BRAKE: np.ones(())}


def sampled(p: HoldingBrake, x: State, enabled: Numeric, period: float) -> State:
    """The state after a sample; enabled: whether the drive is on (1, else 0)."""
    kept = ops.abs(enabled - x["on"]) < 0.5
    since, on = ops.where(kept, x["since"], 0.0), enabled > 0.5
    due = since >= ops.where(on, p.opens, p.closes) - LATER
    closed = ops.where(due, ops.where(on, 0.0, 1.0), x[BRAKE])
    return {"on": enabled, "since": since + period, BRAKE: closed}
