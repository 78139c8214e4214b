"""The Python engine of a rig around simulated drivers, whichever engine the rig itself would choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cosim import Rig
from cosim.core.driver_contract import Driver
from cosim.execution.python_engine import PythonEngine
from cosim.plugins.drivers import sim
from cosim.simulation.tick.virtual_plant import VirtualPlant


def python_engine(
    rig: Rig, *groups: Sequence[int], wrap: Callable[[Driver], Any] = lambda driver: driver, **keys: Any
) -> PythonEngine:
    """Not open yet. groups: numbers of the joints behind each driver (none: one driver for all); wrap: what takes the
    place of a driver; keys: of PythonEngine."""
    plant, pairs = VirtualPlant(rig.tick_model), []
    for group in groups or (range(rig.tick_model.nv),):
        index = np.array(group)
        driver = sim.load(tuple(rig.joints[k] for k in group), index, rig.limits.at(index), plant)
        pairs.append((wrap(driver), index))
    return PythonEngine(rig.tick_model, plant, pairs, **keys)


def armed(engine: Any) -> Any:
    """The engine, with its motors on."""
    engine.open()
    engine.arm()
    return engine


def python_rows(rig: Rig, ticks: int) -> np.ndarray:
    """All signals (k, n) of the first k ticks of a rig, by the Python engine."""
    engine = armed(python_engine(rig))
    rows, _ = engine.run(ticks)
    return rig.observe(engine.view("bumpless_start"), rows)
