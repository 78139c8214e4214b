"""What a rig says of the start and of events, turned into places in the model's vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cosim.errors import InputError, did_you_mean
from cosim.plant import Closing, Plant
from cosim.rig.events import EventSpec
from cosim.rig.mechanism import Closing as ClosingKeys
from cosim.rig.spec import RigSpec
from cosim.switches import Event, Seen, Stop, Switches
from cosim.units import TURN

# share of a time by which a sum of steps may fall short of it
ROUNDING = 1e-15


def starting(plant: Plant, spec: RigSpec) -> Plant:
    """The plant with the guesses of the rig for its coordinates and velocities, and which of them are kept."""
    model, dofs = plant.tree, list(spec.joints.values())
    q, v, kept_q, kept_v = model.neutral(), np.zeros(model.nv), [], []
    at = first = 0
    for joint, kind in zip(model.joints, model.kinds, strict=True):
        whole = spec.several.get(joint.name)
        own = dofs[first : first + kind.nv]
        if whole is None:
            q[at : at + kind.nq] = [dof.initial_position for dof in own]
        elif whole.position is not None:
            q[at : at + kind.nq] = whole.position
        elif kind.nq == kind.nv:
            q[at : at + kind.nq] = [dof.initial_position for dof in own]
        v[first : first + kind.nv] = [dof.initial_velocity for dof in own]
        if whole is not None and whole.velocity is not None:
            v[first : first + kind.nv] = whole.velocity
        kept_q += [dof.kept[0] or (whole is not None and whole.position is not None) for dof in own]
        kept_v += [dof.kept[1] or (whole is not None and whole.velocity is not None) for dof in own]
        at, first = at + kind.nq, first + kind.nv
    held = np.array([name in latched_of(spec) for name in model.dof_names])
    kept = np.array(kept_q, dtype=bool), np.array(kept_v, dtype=bool) | held
    return replace(plant, position=q, velocity=v, kept=kept)


def closing_of(keys: ClosingKeys) -> Closing:
    """How constraints are held, as the rig says."""
    stabilised = TURN * keys.frequency if keys.drift == "stabilisation" else 0.0
    return Closing(keys.drift == "projection", stabilised, keys.elimination)


def latched_of(spec: RigSpec) -> list[str]:
    """Dofs that are latched at the start."""
    return [
        name
        for name, dof in spec.joints.items()
        if dof.latched or any(whole.latched and name.startswith(f"{joint}.") for joint, whole in spec.several.items())
    ]


def switches_of(spec: RigSpec, plant: Plant) -> Switches:
    """Events, stops and latches of the rig. Raises InputError for signals that do not exist."""
    model = plant.model
    couplings = [coupling.name for coupling in model.pure.ties.couplings]
    stops = tuple(
        Stop(f"{name} at its {'upper' if side > 0 else 'lower'} stop", k, bound, side, dof.restitution)
        for k, (name, dof) in enumerate(spec.joints.items())
        for side, bound in dof.stops
    )
    latched = tuple(model.dof_index(name) for name in latched_of(spec))
    known = plant.signals if any(event.signal for event in spec.events) else ()
    events, signals = [], []
    for event in spec.events:
        if event.signal and event.signal not in known:
            what = f"no signal '{event.signal}'{did_you_mean(event.signal, known)}"
            raise InputError(what, spec.source.place((*event.key, "when", "signal")))
        signals += [event.signal] if event.signal else []
        of = [model.dof_index(name) for name in event.dofs]
        if event.constraint is not None:
            of = [couplings.index(event.constraint)]
        events.append(Event(event.name, _value(event), event.do, tuple(of), event.effort))
    return Switches(model.nv, len(couplings), tuple(events), stops, latched, tuple(dict.fromkeys(signals)))


def _value(event: EventSpec) -> Callable[[Seen], Any]:
    """What crosses zero when the event happens."""
    if event.at is not None:
        at = event.at * (1.0 - ROUNDING)
        return lambda seen: seen["t"] - at
    return lambda seen: event.factor * (seen[event.signal] - event.bound)
