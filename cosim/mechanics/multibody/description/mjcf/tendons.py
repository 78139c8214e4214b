"""Tendons of a compiled model: springs and dampers along a length, of joints or of straight pieces between sites. The
armature of a fixed tendon is a rotor that turns with its joints."""

from __future__ import annotations

import numpy as np

from cosim.core.errors import listed
from cosim.mechanics.multibody.description.mjcf.compiled import CompiledModel
from cosim.mechanics.multibody.mechanism import AppliedForce, CoupledRotor, Pose, Spring
from cosim.mechanics.multibody.spring_laws import LengthLaw, along_cord, along_joints

ARMATURE, YIELD = "tendon_armature", "tendon_springyield"


def weights_of(compiled: CompiledModel, tendon: int) -> dict[str, float] | None:
    """Joint -> coefficient of a fixed tendon, whose length is Σ cᵢ qᵢ; None of a spatial one."""
    model, found = compiled.model, {}
    for k in _path(compiled, tendon):
        if not compiled.is_a(model.wrap_type[k], "mjtWrap", "WRAP_JOINT"):
            return None
        name = compiled.joint(model.wrap_objid[k])
        found[name] = found.get(name, 0.0) + float(model.wrap_prm[k])
    return found


def springs_of(compiled: CompiledModel) -> tuple[list[Spring], list[AppliedForce]]:
    """The springs between two sites, and the laws of all other tendons that pull."""
    springs: list[Spring] = []
    forces: list[AppliedForce] = []
    _warn_of_limits(compiled)
    for tendon in range(compiled.model.ntendon):
        law, element = _law(compiled, tendon), compiled.name("TENDON", tendon)
        if compiled.number(YIELD, tendon):
            compiled.warn("its spring yields, which is not simulated: it is taken as elastic", "tendon", element)
        if not law.acts:
            continue
        weights, place = weights_of(compiled, tendon), compiled.place("tendon", element)
        if weights is not None:
            name = compiled.own_name(element, "tendon")
            forces.append(
                AppliedForce(name, along_joints(list(weights.values()), law), joints=(*weights,), place=place)
            )
            continue
        found = _cord(compiled, tendon, law)
        if isinstance(found, Spring):
            springs.append(found)
        elif found is not None:
            forces.append(found)
    return springs, forces


def rotors_of(compiled: CompiledModel) -> list[CoupledRotor]:
    """The armatures of fixed tendons; a spatial one has its own only where it does not bend, and is not taken."""
    found = []
    for tendon in range(compiled.model.ntendon):
        armature, element = compiled.number(ARMATURE, tendon), compiled.name("TENDON", tendon)
        weights = weights_of(compiled, tendon)
        turns = tuple((joint, ratio) for joint, ratio in (weights or {}).items() if ratio)
        if armature and weights is None:
            compiled.warn("it is no fixed tendon: its inertia is not taken", "tendon", element)
        elif armature and turns:
            name, place = compiled.own_name(element, "rotor"), compiled.place("tendon", element)
            found.append(CoupledRotor(name, turns, armature, place=place))
            if _branches(compiled, tendon):
                what = "its inertia couples joints of different branches here; MuJoCo leaves this coupling out"
                compiled.diagnostics.note(what, place)
    return found


def _branches(compiled: CompiledModel, tendon: int) -> bool:
    """Whether a joint of a fixed tendon does not carry another one of it."""
    model = compiled.model
    bodies = {int(model.jnt_bodyid[model.wrap_objid[k]]) for k in _path(compiled, tendon) if model.wrap_prm[k]}
    body, carrying = max(bodies), set[int]()  # the numbers of bodies grow from the ground on
    while body:
        carrying.add(body)
        body = int(model.body_parentid[body])
    return not bodies <= carrying


def _warn_of_limits(compiled: CompiledModel) -> None:
    limited = [] if compiled.disables("LIMIT") else np.flatnonzero(compiled.model.tendon_limited)
    names = [compiled.name("TENDON", int(tendon)) for tendon in limited]
    if names:
        one = len(names) == 1
        which = f"the length of tendon '{names[0]}' is" if one else f"the lengths of the tendons {listed(names)} are"
        compiled.warn(f"{which} not limited here; give limits or stops of the joints")


def _path(compiled: CompiledModel, tendon: int) -> range:
    first = int(compiled.model.tendon_adr[tendon])
    return range(first, first + int(compiled.model.tendon_num[tendon]))


def _law(compiled: CompiledModel, tendon: int) -> LengthLaw:
    """The law of the length; what flags of the file take away is 0."""
    model = compiled.model

    def terms(name: str, flag: str) -> tuple[float, ...]:
        found = [compiled.number(f"tendon_{name}", tendon), *compiled.array(f"tendon_{name}poly", tendon)]
        return () if compiled.disables(flag) else tuple(map(float, found))

    lower, upper = map(float, model.tendon_lengthspring[tendon])
    friction = 0.0 if compiled.disables("FRICTIONLOSS") else float(model.tendon_frictionloss[tendon])
    return LengthLaw(lower, upper, terms("stiffness", "SPRING"), terms("damping", "DAMPER"), friction)


def _cord(compiled: CompiledModel, tendon: int, law: LengthLaw) -> Spring | AppliedForce | None:
    """The spring or the law of a spatial tendon; None, with a warning, of one that wraps around a geom."""
    model, element = compiled.model, compiled.name("TENDON", tendon)
    place = compiled.place("tendon", element)
    frames: list[tuple[str, Pose]] = []
    segments: list[tuple[int, int, float]] = []
    constant, part, before = 0.0, 1.0, None
    for k in _path(compiled, tendon):
        if compiled.is_a(model.wrap_type[k], "mjtWrap", "WRAP_PULLEY"):
            part, before = 1.0 / float(model.wrap_prm[k]), None
            continue
        if not compiled.is_a(model.wrap_type[k], "mjtWrap", "WRAP_SITE"):
            what = "it wraps around a geom; its spring, damping and friction are not taken"
            compiled.warn(what, "tendon", element)
            return None
        body, pose = compiled.site(model.wrap_objid[k])
        here = body, Pose(np.eye(3), pose.position)
        if before is not None and before[0] == body:  # of constant length
            constant += part * float(np.linalg.norm(pose.position - before[1].position))
        elif before is not None:
            segments.append((len(frames), len(frames) + 1, part))
            frames += [before, here]
        before = here
    if not segments:
        return None
    name = compiled.own_name(element, "tendon")
    linear = not any(law.stiffness[1:]) and not any(law.damping[1:]) and not law.friction
    if len(segments) == 1 and segments[0][2] == 1.0 and not constant and law.lower == law.upper and linear:
        (first, p), (second, r) = ((link, pose.position) for link, pose in frames)
        stiffness, damping = (next(iter(terms), 0.0) for terms in (law.stiffness, law.damping))
        return Spring(name, ((first, p), (second, r)), stiffness, damping, law.lower, place)
    return AppliedForce(name, along_cord(segments, constant, law), tuple(frames), place=place)
