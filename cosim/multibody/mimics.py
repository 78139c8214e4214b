"""Joints that follow others: how the coordinates of all joints of a tree follow from the independent ones.

A joint that mimics another has no coordinate of its own: q_all = P q + offset, v_all = P v. Joints that mimic
or are mimicked have one coordinate each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim import ops
from cosim.multibody.constrained_dynamics import ConstraintRow
from cosim.multibody.tree import Tree


@dataclass(frozen=True)
class Map:
    """x_all[k] = multiplier[k] · x[leader[k]] + offset[k]; `own`: the places of x in x_all."""

    leader: np.ndarray
    multiplier: np.ndarray
    offset: np.ndarray
    own: np.ndarray

    @property
    def trivial(self) -> bool:
        return len(self.own) == len(self.leader)

    def spread(self, x: Any) -> Any:
        """P x"""
        return x if self.trivial else x[self.leader] * self.multiplier

    def positions(self, x: Any) -> Any:
        """P x + offset"""
        return x if self.trivial else self.spread(x) + self.offset

    def gathered(self, efforts: Any) -> Any:
        """Pᵀ τ: efforts of all dofs, felt at the independent ones."""
        if self.trivial:
            return efforts
        n = len(self.own)
        return ops.array(
            [ops.total(efforts[k] * self.multiplier[k] for k in np.flatnonzero(self.leader == i)) for i in range(n)]
        )

    def placed(self, x: Any) -> Any:
        """x at the independent places of x_all, 0 elsewhere."""
        return x if self.trivial else ops.placed(np.zeros(len(self.leader)), self.own, x)

    @property
    def matrix(self) -> np.ndarray:
        """P"""
        matrix = np.zeros((len(self.leader), len(self.own)))
        matrix[np.arange(len(self.leader)), self.leader] = self.multiplier
        return matrix

    def rows(self) -> list[ConstraintRow]:
        """What ties the followers: one row each, follower − multiplier · leader."""
        return [
            ConstraintRow({}, {int(k): 1.0, int(self.own[self.leader[k]]): -self.multiplier[k]}, 0.0)
            for k in sorted(set(range(len(self.leader))) - set(self.own.tolist()))
        ]


def find_mimics(tree: Tree) -> tuple[Map, Map]:
    """(the map of coordinates, the map of velocities) of the joints of a tree."""
    return _map(tree, [kind.nq for kind in tree.kinds]), _map(tree, [kind.nv for kind in tree.kinds])


def _map(tree: Tree, sizes: Sequence[int]) -> Map:
    first: dict[str, int] = {}  # joint that moves on its own -> where its part of x begins
    n = 0
    for joint, size in zip(tree.joints, sizes, strict=True):
        if joint.mimic is None:
            first[joint.name] = n
            n += size
    leader, multiplier, offset, own = [], [], [], []
    for joint, size in zip(tree.joints, sizes, strict=True):
        if joint.mimic is None:
            own += range(len(leader), len(leader) + size)
            leader += range(first[joint.name], first[joint.name] + size)
            multiplier += [1.0] * size
            offset += [0.0] * size
        else:
            leader.append(first[joint.mimic.joint])
            multiplier.append(joint.mimic.multiplier)
            offset.append(joint.mimic.offset)
    return Map(np.array(leader, int), np.array(multiplier, float), np.array(offset, float), np.array(own, int))
