"""The dofs of a mechanism by name, as the section `joints` of a rig refers to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cosim.mechanics.multibody.description.elastic_links import with_nodes
from cosim.mechanics.multibody.description.loop_cutting import cut_loops
from cosim.mechanics.multibody.description.topology import depth_first
from cosim.mechanics.multibody.joints import JointKind, kind_of, unit_of, units_of
from cosim.mechanics.multibody.mechanism import Joint, Mechanism


@dataclass(frozen=True)
class Dofs:
    """The degrees of freedom of a mechanism by the names that a rig uses for them.

    single: every dof in model order, and fixed and mimic joints, each as a rotational or linear joint of one
    coordinate; multi_dof_joints: the joints of several dofs by name.
    """

    single: Mapping[str, Joint]
    multi_dof_joints: Mapping[str, JointKind]
    owners: Mapping[str, str]  # dof -> its joint
    clashes: tuple[str, ...]  # names that occur twice

    @property
    def by_name(self) -> frozenset[str]:
        """Dofs of joints of several dofs, such as a floating base. Defaults for all joints are not for them: most have
        no motor, and their units differ."""
        return frozenset(dof for dof, joint in self.owners.items() if joint in self.multi_dof_joints)

    def of(self, name: str) -> list[str]:
        """The dofs of the joint with this name, or the dof with this name; empty if there is neither."""
        if name in self.multi_dof_joints:
            kind = self.multi_dof_joints[name]
            return kind.named(name, kind.dofs)
        return [name] if name in self.single else []


def dofs_of(mechanism: Mechanism) -> Dofs:
    single: dict[str, Joint] = {}
    multi_dof_joints: dict[str, JointKind] = {}
    owners: dict[str, str] = {}
    names: list[str] = []
    tree, _ = cut_loops(with_nodes(mechanism))
    for joint in depth_first(tree):
        kind = kind_of(joint)
        bound = joint.kind == "fixed" or joint.mimic is not None
        dofs = kind.named(joint.name, kind.dofs)
        names += dict.fromkeys([joint.name, *dofs])
        owners |= {} if bound else dict.fromkeys(dofs, joint.name)
        if bound:
            single[joint.name] = joint
        elif kind.is_single:
            single[joint.name] = replace(joint, kind=_representative_kind(joint, kind.dofs[0][1]))
        elif kind.dofs:
            multi_dof_joints[joint.name] = kind
            for dof, (_, unit) in zip(dofs, kind.dofs, strict=True):
                single[dof] = replace(joint, name=dof, kind=_representative_kind(joint, unit))
    return Dofs(single, multi_dof_joints, owners, tuple(name for name, n in Counter(names).items() if n > 1))


def _representative_kind(joint: Joint, unit: str) -> str:
    """The kind of joint with one coordinate of this unit."""
    if unit_of(joint.kind) is not None and len(units_of(joint.kind)) == 1:
        return joint.kind
    return "prismatic" if unit == "m" else "revolute"
