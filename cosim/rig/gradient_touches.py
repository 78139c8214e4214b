"""Which contacts begin or end to touch in a run: derivatives miss how that instant moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.rig.rollouts import run_rollouts
from cosim.rig.wiring.wired_rig import WiredRig


def warnings_of_touches(
    rig: WiredRig,
    parameters: Mapping[str, ArrayLike],
    initial: Mapping[str, ArrayLike],
    ticks: int,
    threads: int | None,
) -> list[str]:
    """A line where a contact touches in some steps of these runs and not in others. In steps a touch jumps from one
    step to the next where the motion changes; the derivative keeps it in its step."""
    if not rig.plant.contacts:
        return []
    names = [contact.name for contact in rig.plant.contacts.contacts.members]
    batch = run_rollouts(rig, parameters, initial, ticks, "final", None, None, [_counter(names)], threads, (), "cpu")
    counts = batch["counted"]
    begun = [name for j, name in enumerate(names) if ((counts[:, j] > 0.0) & (counts[:, j] < counts[:, -1])).any()]
    if not begun:
        return []
    what = f"{_listed(begun)} in some steps of the run and not in others"
    limit = "the derivatives keep each touch in its step, and miss how its instant moves"
    return [f"gradient: {what}: {limit}; compare with differences, see docs/howto/gradients.md"]


def _counter(names: Sequence[str]) -> Callable[..., Numeric]:
    def counted(t: Numeric, signals: Mapping[str, Numeric]) -> Numeric:
        after = ops.where(t > 0.0, 1.0, 0.0)  # forces are of the step before
        touches = [after * ops.where(signals[f"{name}/normal_force"] > 0.0, 1.0, 0.0) for name in names]
        return ops.array([*touches, after])

    return counted


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"contact '{names[0]}' touches"
    more = f" and {len(names) - 1} more"
    return f"contact '{names[0]}'{more} touch"
