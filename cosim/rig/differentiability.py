"""Whether a run of a rig has a derivative: what has none, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cosim.core.errors import InputError, InputErrors, SourceLocation
from cosim.rig.rollouts import check_compiled
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.accumulation import UserMetric
from cosim.simulation.tick.metrics import METRICS

Obstacle = tuple[SourceLocation | str, str, str]  # (place, what has, fix)


def check_differentiable(rig: WiredRig, metrics: Sequence[str | UserMetric]) -> None:
    """Raises InputErrors with everything that has no derivative, each with its place and the fix."""
    check_compiled(rig, "gradients")
    errors = [InputError(f"{what} no derivative; {fix}", place) for place, what, fix in _obstacles(rig)]
    errors += [
        InputError(f"'{name}' counts ticks and has no derivative; use 'iae' or 'error_rms'", "metrics")
        for name in metrics
        if isinstance(name, str) and name in METRICS and METRICS[name].counts_ticks
    ]
    if errors:
        raise InputErrors(errors)


def _obstacles(rig: WiredRig) -> Iterator[Obstacle]:
    """All parts that have no derivative."""
    for find in _KINDS:
        yield from find(rig)


def _encoders(rig: WiredRig) -> Iterator[Obstacle]:
    for name, joint in rig.spec.joints.items():
        if joint.encoder is not None and joint.encoder.cpr is not None:
            keys = "joints", name, "encoder", "cpr"
            yield _at(rig, keys), f"the whole counts of the encoder of '{name}' have", "leave out 'cpr'"


def _events(rig: WiredRig) -> Iterator[Obstacle]:
    modes = rig.plant.modes
    for event in modes.events:
        yield _at(rig, ("events",)), f"the instant of the event '{event.name}' has", "leave the event out"
    for stop in modes.stops:
        name = rig.joints[stop.dof]
        yield _at(rig, ("joints", name, "stops")), f"an impact of '{name}' on its stop has", "leave out 'stops'"


def _steps(rig: WiredRig) -> Iterator[Obstacle]:
    schedule = rig.spec.schedule
    if schedule.adaptive:
        yield _at(rig, ("schedule", "substeps")), "steps of chosen length have", "set 'substeps' to a number"


def _parts(rig: WiredRig) -> Iterator[Obstacle]:
    for part in rig.spec.parts:
        yield _at(rig, part.key), f"the part '{part.name}', which is integrated apart, has", "vary it by rollouts"


def _at(rig: WiredRig, keys: tuple[str | int, ...]) -> SourceLocation | str:
    return rig.place(keys) or ".".join(map(str, keys))


_KINDS: tuple[Callable[[WiredRig], Iterator[Obstacle]], ...] = (_encoders, _events, _steps, _parts)
