"""The dofs of a mechanism by name: what `joints:` of a rig sets, one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cosim.multibody.description.loop_cutting import cut_loops
from cosim.multibody.description.topology import depth_first
from cosim.multibody.joints import JointKind, kind_of
from cosim.multibody.mechanism import Joint, Mechanism


@dataclass(frozen=True)
class Dofs:
    """`single` has every dof in model order, and joints that do not move on their own, each as a joint of one
    coordinate that turns or slides; `several` the joints with more than one, by name."""

    single: Mapping[str, Joint]
    several: Mapping[str, JointKind]
    owners: Mapping[str, str]  # dof -> its joint
    clashes: tuple[str, ...]  # names that two of them have

    def of(self, name: str) -> list[str]:
        """The dofs of a joint by its name, or the one dof that has the name; none where there is neither."""
        if name in self.several:
            return [f"{name}.{dof}" for dof, _ in self.several[name].dofs]
        return [name] if name in self.single else []


def dofs_of(mechanism: Mechanism) -> Dofs:
    single: dict[str, Joint] = {}
    several: dict[str, JointKind] = {}
    owners: dict[str, str] = {}
    names: list[str] = []
    tree, _ = cut_loops(mechanism)
    for joint in depth_first(tree):
        kind = kind_of(joint)
        bound = joint.kind == "fixed" or joint.mimic is not None
        dofs = [joint.name] if len(kind.dofs) == 1 else [f"{joint.name}.{dof}" for dof, _ in kind.dofs]
        names += dict.fromkeys([joint.name, *dofs])
        owners |= {} if bound else dict.fromkeys(dofs, joint.name)
        if bound:
            single[joint.name] = joint
        elif len(kind.dofs) == 1:
            single[joint.name] = replace(joint, kind=_kind(joint, kind.dofs[0][1]))
        elif kind.dofs:
            several[joint.name] = kind
            for name, unit in kind.dofs:
                dof = f"{joint.name}.{name}"
                single[dof] = replace(joint, name=dof, kind=_kind(joint, unit))
    return Dofs(single, several, owners, tuple(name for name, n in Counter(names).items() if n > 1))


def _kind(joint: Joint, unit: str) -> str:
    """What the dof is alike."""
    if joint.kind in ("revolute", "continuous", "prismatic"):
        return joint.kind
    return "prismatic" if unit == "m" else "revolute"
