"""Mimic joints: the coordinates of all joints of a tree from the independent ones.

A joint that mimics another has no coordinate of its own: q_tree = P q + offset, v_tree = P v. Joints that mimic
or are mimicked have one coordinate each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.constrained_dynamics import ConstraintRow
from cosim.mechanics.multibody.tree import Tree


@dataclass(frozen=True)
class MimicMap:
    """x_tree[k] = multiplier[k] · x[leader[k]] + offset[k]; `independent`: indices in x_tree of the elements of x."""

    leader: np.ndarray
    multiplier: np.ndarray
    offset: np.ndarray
    independent: np.ndarray

    @property
    def trivial(self) -> bool:
        """Whether no joint mimics another."""
        return len(self.independent) == len(self.leader)

    def expand(self, x: Numeric) -> Numeric:
        """P x: velocities or accelerations of all dofs."""
        return x if self.trivial else x[self.leader] * self.multiplier

    def positions(self, x: Numeric) -> Numeric:
        """P x + offset"""
        return x if self.trivial else self.expand(x) + self.offset

    def project(self, efforts: Numeric) -> Numeric:
        """Pᵀ τ: efforts of all dofs as efforts of the independent ones."""
        if self.trivial:
            return efforts
        n = len(self.independent)
        return ops.array(
            [ops.sum(efforts[k] * self.multiplier[k] for k in np.flatnonzero(self.leader == i)) for i in range(n)]
        )

    def project_elements(self, efforts: Mapping[int, Numeric]) -> dict[int, Numeric]:
        """`project` of the efforts of a few dofs."""
        found: dict[int, Numeric] = {}
        for k, effort in efforts.items():
            leader = int(self.leader[k])
            share = effort if self.trivial else effort * self.multiplier[k]
            found[leader] = found[leader] + share if leader in found else share
        return found

    def embed(self, x: Numeric) -> Numeric:
        """x at the independent indices of x_tree, 0 elsewhere."""
        return x if self.trivial else ops.set_at(np.zeros(len(self.leader)), self.independent, x)

    @property
    def matrix(self) -> np.ndarray:
        """P"""
        matrix = np.zeros((len(self.leader), len(self.independent)))
        matrix[np.arange(len(self.leader)), self.leader] = self.multiplier
        return matrix

    def rows(self) -> list[ConstraintRow]:
        """The constraints of the followers: one row each, follower − multiplier · leader."""
        return [
            ConstraintRow({}, {int(k): 1.0, int(self.independent[self.leader[k]]): -self.multiplier[k]}, 0.0)
            for k in sorted(set(range(len(self.leader))) - set(self.independent.tolist()))
        ]


def mimic_maps(tree: Tree) -> tuple[MimicMap, MimicMap]:
    """(the map of coordinates, the map of velocities) of the joints of a tree."""
    return _mimic_map(tree, [kind.nq for kind in tree.kinds]), _mimic_map(tree, [kind.nv for kind in tree.kinds])


def _mimic_map(tree: Tree, sizes: Sequence[int]) -> MimicMap:
    first: dict[str, int] = {}  # independent joint -> index of its first element in x
    n = 0
    for joint, size in zip(tree.joints, sizes, strict=True):
        if joint.mimic is None:
            first[joint.name] = n
            n += size
    leader: list[int] = []
    multiplier: list[float] = []
    offset: list[float] = []
    independent: list[int] = []
    for joint, size in zip(tree.joints, sizes, strict=True):
        if joint.mimic is None:
            independent += range(len(leader), len(leader) + size)
            leader += range(first[joint.name], first[joint.name] + size)
            multiplier += [1.0] * size
            offset += [0.0] * size
        else:
            leader.append(first[joint.mimic.joint])
            multiplier.append(joint.mimic.multiplier)
            offset.append(joint.mimic.offset)
    return MimicMap(
        np.array(leader, int), np.array(multiplier, float), np.array(offset, float), np.array(independent, int)
    )
