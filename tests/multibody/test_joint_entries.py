"""Everybody who asks for the kind of a joint knows all kinds, or refuses those that he does not know with a reason."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from cosim.mechanics.formulations.cartesian.elementary import has_composition
from cosim.mechanics.multibody.joints import GENERAL, JOINTS, Pictogram, entry_of, kind_of, unit_of, units_of
from cosim.mechanics.multibody.mechanism import Joint, Pose
from cosim.output.scene.build import JOINT_SHAPES, joint_shape

BUILT_IN = [kind for kind in JOINTS if kind != GENERAL]


def joint(kind: str) -> Joint:
    second = np.array([1.0, 0.0, 0.0]) if kind == "universal" else None
    return Joint("a", kind, "base", "arm", Pose.identity(), np.array([0.0, 0.0, 1.0]), second_axis=second, pitch=0.01)


@pytest.mark.parametrize("kind", BUILT_IN)
def test_the_unit_of_a_kind_is_that_of_its_dofs(kind: str):
    units = {unit for _, unit in kind_of(joint(kind)).dofs}
    assert set(units_of(kind)) == units
    assert unit_of(kind) == (units.pop() if len(units) == 1 else None if units else "rad")


@pytest.mark.parametrize("kind", BUILT_IN)
def test_a_constant_hinge_is_one(kind: str):
    motion, random = kind_of(joint(kind)), np.random.default_rng(3)
    at = [
        motion.hinge(motion.in_general_position(random), random.normal(size=motion.nv), 0.0).columns for _ in range(2)
    ]
    same = all(
        np.array_equal(a.linear, b.linear) and np.array_equal(a.angular, b.angular) for a, b in zip(*at, strict=True)
    )
    assert same == entry_of(joint(kind)).constant


@pytest.mark.parametrize("kind", BUILT_IN)
def test_a_kind_is_drawn_as_its_pictogram_says(kind: str):
    shapes = joint_shape(joint(kind), Pose.identity(), 0.1, actuated=False)
    assert len(shapes) == bool(entry_of(joint(kind)).drawn)


def test_every_pictogram_has_a_shape():
    assert set(JOINT_SHAPES) == {drawn for drawn in get_args(Pictogram) if drawn}


@pytest.mark.parametrize("kind", BUILT_IN)
def test_the_cartesian_formulation_knows_every_kind(kind: str):
    assert has_composition(joint(kind))
