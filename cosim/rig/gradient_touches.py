"""Elastic contacts that touch for few steps: their derivatives are as coarse as their steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.rig.rollouts import run_rollouts
from cosim.rig.wiring.wired_rig import WiredRig

FEW_STEPS = 40  # of a touch; the derivative of a rebound then has an error of up to about a quarter


def warnings_of_touches(
    rig: WiredRig,
    parameters: Mapping[str, ArrayLike],
    initial: Mapping[str, ArrayLike],
    ticks: int,
    threads: int | None,
) -> list[str]:
    """A line where elastic contacts rebound in fewer than FEW_STEPS steps."""
    contacts = rig.plant.contacts.contacts.members if rig.plant.contacts else ()
    elastic = [contact.name for contact in contacts if contact.law.stiffness is not None]
    if not elastic:
        return []
    counters = [_counter(elastic)]
    batch = run_rollouts(rig, parameters, initial, ticks, "final", None, None, counters, threads, (), "cpu")
    closed, touches = batch["counted"], np.stack([batch.final[f"{name}/touches"] for name in elastic], axis=1)
    opened = touches - np.stack([batch.final[f"{name}/state"] > 0.0 for name in elastic], axis=1)
    step = rig.tick_model.step / rig.spec.schedule.substeps
    lengths = np.where(opened > 0.5, closed / np.maximum(touches, 1.0) / step, np.inf).min(axis=0)
    j = int(np.argmin(lengths))
    if lengths[j] >= FEW_STEPS:
        return []
    more = f" and {short - 1} more" if (short := int((lengths < FEW_STEPS).sum())) > 1 else ""
    what = f"contact '{elastic[j]}'{more} touches and opens again within {lengths[j]:.0f} steps"
    fix = f"use a schedule.step of which it has {FEW_STEPS} or more, or stiffness: rigid; see docs/howto/gradients.md"
    return [f"gradient: {what}, and the derivative of its rebound is as coarse as these; {fix}"]


def _counter(names: Sequence[str]) -> Callable[..., Numeric]:
    """Integrates over time for how long each contact is closed [s]."""

    def counted(t: Numeric, signals: Mapping[str, Numeric]) -> Numeric:
        return ops.array([ops.where(signals[f"{name}/normal_force"] > 0.0, 1.0, 0.0) for name in names])

    return counted
