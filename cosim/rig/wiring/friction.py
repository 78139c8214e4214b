"""Laws of friction from the section `joints` of a rig, in its mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.mechanics.multibody.friction import JointFriction
from cosim.mechanics.multibody.mechanism import Joint, Mechanism
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.rig_spec import RigSpec


def friction_laws(spec: RigSpec) -> dict[str, JointFriction]:
    """Dof -> the law of its friction, where it has one."""
    return {name: joint.friction for name, joint in spec.joints.items() if joint.friction is not None}


def with_friction(mechanism: Mechanism, laws: Mapping[str, JointFriction], owners: Mapping[str, str]) -> Mechanism:
    """The mechanism with laws of friction of these dofs. owners: dof -> its joint, of all dofs."""
    if not laws:
        return mechanism
    dofs: dict[str, list[str]] = {}
    for dof, joint in owners.items():
        dofs.setdefault(joint, []).append(dof)

    def of(joint: Joint) -> Joint:
        own = tuple(laws.get(dof) for dof in dofs.get(joint.name, ()))
        return replace(joint, friction_laws=own) if any(own) else joint

    loops = tuple(replace(loop, joint=of(loop.joint)) for loop in mechanism.loops)
    return replace(mechanism, joints=tuple(of(joint) for joint in mechanism.joints), loops=loops)


def check_friction(spec: RigSpec, reading: Reading) -> None:
    """Record bristles in explicit steps, which would diverge, and friction of a load that is not known."""
    *implicit, last = (name for name, method in INTEGRATORS.items() if method.implicit)
    for name, law in friction_laws(spec).items():
        path = ("joints", name, "friction")
        if law.sticks and spec.schedule.integrator not in (*implicit, last):
            what = f"bristles are too stiff for steps of {spec.schedule.integrator}"
            reading.fail(path, f"{what}; use schedule.integrator: {', '.join(implicit)} or {last}, or model: stribeck")
        if law.load_friction and spec.joints[name].actuator is None:
            what = f"joint '{name}' has no actuator whose effort would be its load"
            reading.fail((*path, "load_friction"), f"{what}; give it one or take load_friction out")
