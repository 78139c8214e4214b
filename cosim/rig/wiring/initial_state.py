"""The initial state of a rig and its events, as indices and vectors of the model, and the equilibrium in which elastic
links start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from cosim.control.elastic_modes import equilibrium
from cosim.control.limits import POSITION_TOLERANCE, STOP
from cosim.control.plausibility import starts_moving, starts_outside
from cosim.core.errors import InputError, InputErrors, did_you_mean
from cosim.core.types import BRAKE, Numeric
from cosim.core.units import TURN
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.elastic import AT
from cosim.rig.sections.events import EventSpec
from cosim.rig.sections.mechanism import LoopClosureKeys
from cosim.rig.sections.rig_spec import RigSpec
from cosim.simulation.plant import contact_modes
from cosim.simulation.plant.brakes import Brake
from cosim.simulation.plant.contact_modes import ExactPoint
from cosim.simulation.plant.hybrid_modes import HardStop, HybridModes, PlantEvent
from cosim.simulation.plant.indicators import ELAPSED, EventInputs
from cosim.simulation.plant.plant import Plant
from cosim.simulation.plant.plant_description import LoopClosure
from cosim.simulation.plant.recorded_signals import recorded_at_start

ROUNDING = 1e-15  # relative error of a sum of steps
CREEP_STEPS = 2.0  # in which a brake of several dofs stops from its creep speed: then an explicit step is stable
_OF_A_SPHERICAL_JOINT = "'{}' is one dof of '{}', which turns: its velocity is along the body"


def with_initial_state(plant: Plant, spec: RigSpec) -> Plant:
    """The plant with the initial coordinates and velocities of the rig, and which of them loop closure keeps."""
    model, dofs = plant.full_model, list(spec.joints.values())
    q, v, kept_q, kept_v = model.neutral(), np.zeros(model.nv), [], []
    at = first = 0
    for joint, kind in zip(model.joints, model.kinds, strict=True):
        whole = spec.multi_dof_joints.get(joint.name)
        own = dofs[first : first + kind.nv]
        if whole is not None and whole.position is not None:
            q[at : at + kind.nq] = whole.position
            if whole.rotates:  # scaled so that its norm does not overflow
                q[at + kind.nq - 4 : at + kind.nq] /= np.abs(whole.position[-4:]).max()
        elif kind.nq == kind.nv:
            q[at : at + kind.nq] = [dof.initial_position for dof in own]
        v[first : first + kind.nv] = [dof.initial_velocity for dof in own]
        if whole is not None and whole.velocity is not None:
            v[first : first + kind.nv] = whole.velocity
        kept_q += [dof.initial_given[0] or (whole is not None and whole.position is not None) for dof in own]
        kept_v += [dof.initial_given[1] or (whole is not None and whole.velocity is not None) for dof in own]
        at, first = at + kind.nq, first + kind.nv
    latched = latched_of(spec)
    held = np.array([name in latched for name in model.dof_names], dtype=bool)
    kept = np.array(kept_q, dtype=bool), np.array(kept_v, dtype=bool) | held
    released = tuple(event.constraint for event in spec.events if event.constraint is not None)
    return replace(plant, position=q, velocity=v, kept=kept, released=released)


def loop_closure_of(keys: LoopClosureKeys) -> LoopClosure:
    """The settings of loop closure, from the keys of the rig."""
    stabilised = TURN * keys.frequency if keys.drift == "baumgarte" else 0.0
    return LoopClosure(keys.drift == "projection", stabilised, keys.elimination)


def latched_of(spec: RigSpec) -> set[str]:
    """Dofs that are latched at the start."""
    whole = {name for name, joint in spec.multi_dof_joints.items() if joint.latched}
    return {name for name, dof in spec.joints.items() if dof.latched or spec.owners[name] in whole}


def is_spherical_dof(spec: RigSpec, dof: str) -> bool:
    """Whether a dof belongs to a joint with a quaternion: its velocity is in body axes, no rate of its position."""
    joint = spec.multi_dof_joints.get(spec.owners[dof])
    return joint is not None and joint.rotates


_NEVER_HELD = {
    "unlatch": ("latched", "add a latch, give joints.{}.latched,"),
    "unbrake": ("braked", "add a brake"),
}


def hybrid_modes_of(spec: RigSpec, plant: Plant) -> HybridModes:
    """Events, stops and latches of the rig. Raises InputErrors for those that do not fit it, and for joints that start
    beyond their limits."""
    found = (*_mismatches(spec, plant), *_beyond_limits(spec, plant))
    errors = [InputError(what, spec.source.place(path)) for path, what in found]
    if errors:
        raise InputErrors(errors)
    model = plant.model
    couplings = [coupling.name for coupling in model.equations.constraints.members]
    stops = tuple(
        HardStop(f"{name} at its {'upper' if side > 0 else 'lower'} stop", k, bound, side, dof.restitution)
        for k, (name, dof) in enumerate(spec.joints.items())
        if name not in plant.real  # which has its own
        for side, bound in dof.stops
    )
    latched = tuple(sorted(model.dof_index(name) for name in latched_of(spec)))
    events = []
    for event in spec.events:
        of = [model.dof_index(name) for name in event.dofs]
        if event.constraint is not None:
            of = [couplings.index(event.constraint)]
        brake = None
        if event.do == "brake":
            number = 1 + sum(other.brake is not None for other in events)
            step = spec.schedule.step_ns * 1e-9 / spec.schedule.substeps
            creep = CREEP_STEPS * step * max(event.efforts) * plant.mobility(of) if len(of) > 1 else 0.0
            over = _states(plant)[event.over] if event.over else (ELAPSED, of[0])
            brake = Brake(number, event.name, tuple(of), event.efforts, event.points, over, event.static_ratio, creep)
        events.append(PlantEvent(event.name, _value(event), event.do, tuple(of), brake))
    signals = [event.signal for event in spec.events if event.signal]
    for name, joint in plant.sampled_joints.items():
        effort = getattr(joint.part, "braking_effort", None)
        if effort is not None and name not in plant.twins:
            events += _holding_brake(name, model.dof_index(name), effort, events)
            signals.append(f"{name}/{BRAKE}")
    signals = tuple(dict.fromkeys(signals))
    return HybridModes(model.nv, len(couplings), tuple(events), stops, latched, signals, exact_points(spec, plant))


def exact_points(spec: RigSpec, plant: Plant) -> tuple[ExactPoint, ...]:
    """The points of exact contacts. Their creep is the speed that friction takes away where the weight presses."""
    if not plant.exact:
        return ()
    step = spec.schedule.step_ns * 1e-9 / spec.schedule.substeps
    weight = float(np.linalg.norm(np.asarray(plant.gravity, dtype=float)))
    contacts = plant.contacts.contacts.of_points
    return tuple(
        ExactPoint(one.name, contact_modes.CREEP_STEPS * step * float(one.law.sliding) * weight) for one in contacts
    )


def _holding_brake(name: str, dof: int, effort: float, others: Sequence[PlantEvent]) -> list[PlantEvent]:
    """The brake of a drive, which closes and opens with its signal."""
    number = 1 + sum(other.brake is not None for other in others)
    closes, opens = f"the brake of '{name}' closes", f"the brake of '{name}' opens"
    brake, signal = Brake(number, closes, (dof,), (effort,), over=(ELAPSED, dof)), f"{name}/{BRAKE}"
    return [
        PlantEvent(closes, lambda inputs: inputs[signal] - 0.5, "brake", (dof,), brake),
        PlantEvent(opens, lambda inputs: 0.5 - inputs[signal], "unbrake", (dof,)),
    ]


def _states(plant: Plant) -> dict[str, tuple[str, int]]:
    """Positions and velocities of dofs: signal -> (its input of events, dof)."""
    names = enumerate(plant.model.dof_names)
    return {f"{name}/{what}": (what, k) for k, name in names for what in ("position", "velocity")}


def _mismatches(spec: RigSpec, plant: Plant) -> Iterator[tuple[tuple, str]]:
    """(path, message) of events, stops and latches that do not fit their dofs."""
    states, latched = _states(plant), latched_of(spec)
    held = {
        "unlatch": latched.union(*(event.dofs for event in spec.events if event.do == "latch")),
        "unbrake": set[str]().union(*(event.dofs for event in spec.events if event.do == "brake")),
    }
    known: tuple[str, ...] = ()
    if any(event.signal or event.over for event in spec.events):  # the plant has no signals of modes yet
        holding = [f"{dof}/holding_effort" for dof in sorted(held["unlatch"] | held["unbrake"])]
        known = (
            *recorded_at_start(plant).declared,
            *holding,
            *(f"{dof}/brake_slip" for dof in sorted(held["unbrake"])),
        )
    given = {*plant.prescribed_dofs, *plant.real}
    for event in spec.events:
        if event.signal and event.signal not in known:
            yield (*event.key, "when", "signal"), f"no signal '{event.signal}'{did_you_mean(event.signal, known)}"
        if event.over and event.over not in states:
            what = f"no signal '{event.over}'{did_you_mean(event.over, states)}"
            if event.over in known:
                what = f"'{event.over}' may depend on the brake itself; use the position or velocity of a dof, such as"
                what = f"{what} '{next(iter(states))}'"
            yield (*event.key, "over", "signal"), what
        if len(event.dofs) == 1 and event.do != "unlatch" and is_spherical_dof(spec, event.dofs[0]):
            of = _OF_A_SPHERICAL_JOINT.format(event.dofs[0], spec.owners[event.dofs[0]])
            yield (*event.key, "of"), f"{of}; name the whole joint"
        for name in event.dofs if event.do in ("disable", "enable") else ():
            if name not in plant.periods:
                what = f"joint '{name}' has no simulated drive with sampled loops to {event.do}"
                yield (*event.key, "of"), f"{what}; give its actuator of type drive 'loops'"
        for name in event.dofs:
            if name in plant.prescribed_dofs:
                yield (*event.key, "of"), f"joint '{name}' is prescribed and follows its trajectory; name another one"
            elif name in plant.real:
                yield (*event.key, "of"), f"joint '{name}' is real and follows its measurement; name another one"
        if event.do in held and not (held[event.do] | given).intersection(event.dofs):
            joint = spec.owners[event.dofs[0]]
            of = event.dofs[0] if len(event.dofs) == 1 else joint
            never, fix = _NEVER_HELD[event.do]
            yield (*event.key, "of"), f"'{of}' is never {never}; {fix.format(joint)} or take this event out"
    for (name, dof), position in zip(spec.joints.items(), plant.start_positions, strict=True):
        at, joint = ("joints", name), spec.owners[name]
        for key, given in (("latched", dof.latched), ("stops", dof.stops)):
            if given and name in plant.prescribed_dofs:
                yield (*at, key), f"joint '{name}' is prescribed and follows its trajectory; take out '{key}'"
        if name in latched and dof.initial_given[1] and dof.initial_velocity != 0.0:
            yield (
                (*at, "initial", "velocity"),
                f"'{name}' is latched and starts at rest; take out the velocity or 'latched'",
            )
        given = ("initial", dof.initial_given[0]), ("stops", dof.stops), ("latched", dof.latched)
        for key, _ in (pair for pair in given if pair[1] and is_spherical_dof(spec, name)):
            fix = f" and give joints.{joint}.{key}" if key != "stops" else ", or use a chain of prismatic joints"
            yield (*at, key), f"{_OF_A_SPHERICAL_JOINT.format(name, joint)}; take out '{key}'{fix}"
        for side, bound in dof.stops:
            if side * (position - bound) > POSITION_TOLERANCE and not dof.initial_given[0]:
                key, unit = "upper" if side > 0 else "lower", plant.model.dof_units[plant.model.dof_index(name)]
                what = f"with its loops closed joint '{name}' starts at {position:.6g} {unit}, beyond its {key} stop at"
                yield (*at, "stops", key), f"{what} {bound:.6g} {unit}; give another guess or stop"
    full_deflection = plant.full_model.full_deflection
    for name, dof in spec.joints.items():
        if abs(dof.initial_position) > full_deflection.get(name, np.inf):
            what = f"{dof.initial_position:.6g} m deflects the elastic link by more than its length"
            yield ("joints", name, "initial", "position"), f"{what}; give less"
    for name, whole in spec.multi_dof_joints.items():
        if whole.latched and name in plant.rotations:
            what = f"joint '{name}' is prescribed and follows its orientations; take out 'latched'"
            yield ("joints", name, "latched"), what
        if whole.latched and whole.velocity is not None and any(whole.velocity):
            what = f"'{name}' is latched and starts at rest; take out the velocity or 'latched'"
            yield ("joints", name, "initial", "velocity"), what


def _beyond_limits(spec: RigSpec, plant: Plant) -> Iterator[tuple[tuple, str]]:
    """(path, message) of simulated joints whose computed start would stop the first tick. Given positions are checked
    with their section."""
    starts = zip(spec.joints.items(), plant.start_positions, plant.start.v, plant.full_model.dof_units, strict=True)
    for (name, joint), position, velocity, unit in starts:
        if name in plant.real:
            continue
        actions, limits = spec.guard.actions | joint.actions, joint.limits
        lower, upper, fastest = limits["lower"], limits["upper"], limits["velocity"]
        at, fix = ("joints", name, "limits"), f"change its start or joints.{name}.limits"
        if actions["position"] == STOP and starts_outside(position, lower, upper):
            what = f"joint '{name}' starts at {position:.6g} {unit}, outside its limits {lower:.6g} to {upper:.6g}"
            yield at, f"{what} {unit}; {fix}"
        if actions["velocity"] == STOP and starts_moving(velocity, fastest):
            what = f"joint '{name}' starts at {velocity:.6g} {unit}/s, above its limit of {fastest:.6g} {unit}/s"
            yield at, f"{what}; {fix}"


def _value(event: EventSpec) -> Callable[[EventInputs], Numeric]:
    """The function that crosses zero at the event."""
    if event.at is not None:
        at = event.at * (1.0 - ROUNDING)
        return lambda inputs: inputs["t"] - at
    return lambda inputs: event.factor * (inputs[event.signal] - event.bound)


def with_elastic_equilibrium(plant: Plant, spec: RigSpec, reading: Reading) -> Plant:
    """The plant with the modes of links with `initial: equilibrium` where they hold these. Raises InputErrors for a
    mechanism with closed loops, a mode with a position of its own, and links without an equilibrium."""
    model = plant.full_model
    links = [link.elastic for link in model.mechanism.links]
    in_equilibrium = [
        f"{link.name}.{mode}"
        for link, elastic in zip(model.mechanism.links, links, strict=True)
        if isinstance(elastic, ElasticLink) and elastic.in_equilibrium
        for mode, _ in elastic.modes
    ]
    if not in_equilibrium:
        return plant
    for name in in_equilibrium:
        if spec.joints[name].initial_given[0]:
            at = ("joints", name, "initial", "position")
            reading.fail(at, "the link of the mode starts in its equilibrium; take this or its 'initial' out")
    if reading.errors:
        raise InputErrors(reading.errors)
    dofs = np.array([model.dof_index(name) for name in in_equilibrium], dtype=int)
    try:
        if model.constraint_rows:
            raise InputError("an equilibrium is found without closed loops and constraints alone; take this out")
        bent = equilibrium(model, plant.start_positions, dofs)
        for name, largest in model.full_deflection.items():
            if name in in_equilibrium and abs(bent[model.dof_index(name)]) > largest:
                raise InputError(
                    f"the load of mode '{name}' bends its link by more than its length; check its stiffness"
                )
    except InputError as error:
        entries = spec.source.data["mechanism"]["elastic"]
        number = next(i for i, entry in enumerate(entries) if entry.get("initial") == "equilibrium")
        reading.fail((*AT, number, "initial"), error.what)
        raise InputErrors(reading.errors) from None
    position = np.array(plant.position, dtype=float)
    position[[model.coordinate_names.index(name) for name in in_equilibrium]] = bent[dofs]
    return replace(plant, position=position)
