"""The one table of joints.

A joint moves the child's frame in the joint's own frame. A row says how many coordinates it has and gives
two pure functions of them:

* `place(q) -> (Q, r)`: the child's axes (3, 3) and origin (3,) in the joint frame;
* `hinge(q, v) -> (S, bias)`: the columns of the relative velocity, S_i = (linear, angular) along the child's
  axes, and the part of the relative acceleration that remains when v̇ = 0.

Axes are turned to z when the tree is built, so one row serves every direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim import ops
from cosim.multibody.spatial import Vector


@dataclass(frozen=True)
class JointKind:
    nq: int
    nv: int
    place: Callable[[Any], tuple[Any, Any]]
    hinge: Callable[[Any, Any], tuple[tuple[Vector, ...], Vector]]


_O = np.zeros(3)
_Z = np.array([0.0, 0.0, 1.0])
_STILL = Vector(_O, _O)


def _turn_about_z(q: Any) -> tuple[Any, Any]:
    s, c = ops.sin(q[0]), ops.cos(q[0])
    return ops.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), _O


def _slide_along_z(q: Any) -> tuple[Any, Any]:
    return np.eye(3), ops.array([0.0, 0.0, q[0]])


JOINTS: dict[str, JointKind] = {
    "revolute": JointKind(1, 1, _turn_about_z, lambda q, v: ((Vector(_O, _Z),), _STILL)),
    "prismatic": JointKind(1, 1, _slide_along_z, lambda q, v: ((Vector(_Z, _O),), _STILL)),
}

# what files call a joint -> its row; `fixed` has none, its bodies are merged
KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic"}
