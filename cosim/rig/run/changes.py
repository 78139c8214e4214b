"""Changes of a rig while it runs: what was changed, before which tick, the same changes planned for another run, and
the orders of clients to stop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.controlled_stop import REQUESTED
from cosim.core.errors import InputError
from cosim.execution.execution_mode import PlannedChange
from cosim.rig.run.recorded_run import Change
from cosim.rig.wiring.wired_rig import WiredRig

if TYPE_CHECKING:
    from cosim.execution.engine import Engine

WAITING, ENDED = "waiting", "ended"  # states of a run besides those of the scheduler
CONTROLLED_STOP = "controlled_stop"  # the name of the order to stop


def places_of(rig: WiredRig, where: slice) -> np.ndarray:
    """(k,) places in the memory of a part of the parameters."""
    first = rig.run_model.layout.place("parameters").where.start
    return first + np.arange(where.start, where.stop)


def planned_of(rig: WiredRig, changes: Iterable[Change]) -> list[PlannedChange]:
    """The changes as they are made between ticks. Raises InputError for one that this rig does not have."""
    changes = sorted(changes, key=lambda change: change.tick)
    if not changes:  # then the parts of the rig are not looked at
        return []
    from cosim.rig.parameter_table import table_of

    table, planned = table_of(rig), list[PlannedChange]()
    for tick, name, value in changes:
        if name == CONTROLLED_STOP and rig.run_model.has_controlled_stop:
            requested = rig.run_model.layout.place("controlled_stop", "requested").where
            places = np.arange(requested.start, requested.stop)
        elif name in table.live:
            places = places_of(rig, table.live[name].where)
        else:
            raise InputError(table.unknown(name), f"parameter '{name}' of a change")
        if len(value) not in (1, len(places)):
            raise InputError(f"'{name}' has {len(places)} values, got {len(value)}", "changes")
        planned.append(PlannedChange(tick, places, np.broadcast_to(np.array(value, dtype=float), len(places))))
    return planned


def ordered_stop(engine: Engine) -> Sequence[Change]:
    """The order to stop that began the controlled stop of the ticks that have run, if there was one."""
    model = engine.tick_model
    if not model.has_controlled_stop or engine.view("controlled_stop", "reason") != REQUESTED:
        return ()
    stop = BumplessStart.of(engine.view("bumpless_start"), model.nv).stop
    assert stop is not None
    return (Change(round(float(stop.t) / model.step), CONTROLLED_STOP, (1.0,)),)


class OrderedStop(Exception):
    """A client stops the run. event: what happened, or fault: why it failed."""

    def __init__(self, event: str = "", fault: str = "") -> None:
        super().__init__(event or fault)
        self.event, self.fault = event, fault
