"""A mechanism's dynamics as fast functions of numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cosim.compile import Compiled, Interpreted, Port, compile
from cosim.errors import InputError, did_you_mean
from cosim.multibody.description import Mechanism
from cosim.multibody.rules import ROLLED_FROM, Rules, find_mimics
from cosim.multibody.tree import Tree, build_tree, refuse_massless_motion
from cosim.multibody.urdf import read_urdf
from cosim.types import Limits

GRAVITY = (0.0, 0.0, -9.81)


class Model:
    """The rigid-body dynamics of a tree of joints, in O(n), compiled on first use.

    Every function takes one state, arrays (nq,) and (nv,), or a batch of k of them, (k, nq) and (k, nv);
    a single array among batches serves every row. `out=` gives the array(s) to fill: with it, and float64
    arrays, a call costs little more than the arithmetic. SI units; joint order as in `joint_names`: depth
    first, siblings in file order, mimic joints left out (they have no coordinate of their own).
    """

    nq: int
    nv: int
    joint_names: tuple[str, ...]
    gravity: np.ndarray

    def __init__(self, mechanism: Mechanism, gravity: Sequence[float] = GRAVITY, rotor_inertia: Any = None) -> None:
        """rotor_inertia: reflected inertia of the drives' rotors on the joints [kg m² or kg], (nv,) or by joint
        name, default 0.

        Raises InputErrors for links that could move without any inertia, ValueError for rotors or a gravity
        that are no such arrays.
        """
        tree = build_tree(mechanism)
        mimics = find_mimics(tree)
        self.joints = tuple(j for j in tree.joints if j.mimic is None)
        self.joint_names = tuple(j.name for j in self.joints)
        self.nv = self.nq = len(self.joints)
        if rotor_inertia is not None:
            rotors = np.zeros(len(tree.joints))
            rotors[[k for k in range(len(rotors)) if k not in mimics.followers]] = self._rotors(rotor_inertia)
            tree = tree.with_rotors([rotors[k : k + 1] for k in range(len(rotors))])
        refuse_massless_motion(tree)
        self.mechanism = mechanism
        self.gravity = np.array(gravity, dtype=float)
        if self.gravity.shape != (3,):
            raise ValueError(f"gravity must be 3 numbers, got {gravity}")
        self.pure = Rules(tree, mimics, self.gravity)
        self._tree: Tree = tree
        self._functions: dict[tuple[str, str | None], Compiled | Interpreted] = {}

    def _rotors(self, rotor_inertia: Any) -> np.ndarray:
        if isinstance(rotor_inertia, Mapping):
            by_joint = np.zeros(self.nv)
            for name, inertia in rotor_inertia.items():
                by_joint[self.joint_index(name)] = inertia
            rotor_inertia = by_joint
        rotors = np.asarray(rotor_inertia, dtype=float)
        if rotors.shape != (self.nv,) or not np.all((rotors >= 0.0) & np.isfinite(rotors)):
            raise ValueError(f"rotor_inertia must be {self.nv} numbers that are not negative, got {rotor_inertia}")
        return rotors

    @classmethod
    def from_urdf(cls, path: str | Path, floating_base: bool = False, gravity: Sequence[float] = GRAVITY) -> Model:
        """The model of a URDF file; its root link is the ground.

        Raises InputErrors with every mistake of the file and its line.
        """
        if floating_base:
            raise InputError("floating bases are not supported; leave floating_base=False", str(path))
        return cls(read_urdf(path), gravity)

    def with_rotor_inertia(self, rotor_inertia: Any) -> Model:
        """The same mechanism with rotors: (nv,) inertia reflected to each joint."""
        return Model(self.mechanism, tuple(self.gravity), rotor_inertia)

    @property
    def limits(self) -> Limits:
        """What the file says of range, speed and effort of each joint; infinite where it says nothing."""
        columns = [(j.lower, j.upper, j.max_velocity, j.max_effort) for j in self.joints]
        return Limits(*np.array(columns, dtype=float).reshape(-1, 4).T.copy())

    def joint_index(self, name: str) -> int:
        """The place of a joint in all vectors. Raises InputError naming the joints that exist."""
        if name not in self.joint_names:
            raise InputError(f"joint '{name}' does not exist{did_you_mean(name, self.joint_names)}")
        return self.joint_names.index(name)

    # --- dynamics ---

    def forward_dynamics(self, q: Any, v: Any, tau: Any, out: Any = None) -> Any:
        """q̈ (nv,) of free joints under efforts τ (nv,) (theory §1, separate-body sweeps).

        τ is the whole effort along each joint; what damping and friction take is not subtracted here:
        see `friction_effort`. Raises ValueError or TypeError for arrays that do not fit.
        """
        return self._ready("forward_dynamics")(q, v, tau, out=out)

    def inverse_dynamics(self, q: Any, v: Any, qdd: Any, out: Any = None) -> Any:
        """τ (nv,) that moves the joints with q̈ (nv,)."""
        return self._ready("inverse_dynamics")(q, v, qdd, out=out)

    def hybrid_dynamics(self, q: Any, v: Any, qdd: Any, tau: Any, prescribed: Any, out: Any = None) -> Any:
        """(q̈, τ), full vectors (nv,) each: τ of the joints whose q̈ is prescribed (theory §2), q̈ of those
        that are free under the given τ; the other entries are passed through.

        prescribed: bool (nv,). out: a tuple of two arrays.
        """
        return self._ready("hybrid_dynamics")(q, v, qdd, tau, prescribed, out=out)

    def friction_effort(self, v: Any, out: Any = None) -> Any:
        """What the joints' damping and Coulomb friction take, (nv,): d v + f v / √(v² + v_s²), v_s = 0.01.

        The efforts that move the mechanism are τ − friction_effort(v).
        """
        return self._ready("friction_effort")(v, out=out)

    def mass_matrix(self, q: Any, out: Any = None) -> Any:
        """M(q) (nv, nv), rotors included."""
        if len(self._tree.bodies) >= ROLLED_FROM:
            return self._mass_matrix_by_columns(q, out)
        return self._ready("mass_matrix")(q, out=out)

    def _mass_matrix_by_columns(self, q: Any, out: Any) -> Any:
        """Straight-line code for n² entries would not end for many bodies: one O(n) sweep per column instead."""
        q = np.asarray(q, dtype=float)
        result = np.empty((*q.shape[:-1], self.nv, self.nv)) if out is None else out
        for row in np.ndindex(q.shape[:-1]):
            self.inertia_effort(q[row], np.eye(self.nv), out=result[row])
        return result

    def inertia_effort(self, q: Any, qdd: Any, out: Any = None) -> Any:
        """M(q) q̈ (nv,) without forming M: the effort that acceleration alone takes."""
        return self._ready("inertia_effort")(q, qdd, out=out)

    # --- energies ---

    def kinetic_energy(self, q: Any, v: Any, out: Any = None) -> Any:
        """½ vᵀ M v [J], a number or (k,)."""
        return self._ready("kinetic_energy")(q, v, out=out)

    def potential_energy(self, q: Any, out: Any = None) -> Any:
        """−Σ m g·r [J], r from the ground's origin; a number or (k,)."""
        return self._ready("potential_energy")(q, out=out)

    # --- frames ---

    def frame_pose(self, q: Any, frame: str, out: Any = None) -> Any:
        """The homogeneous matrix (4, 4) of a link's frame in ground axes. Raises InputError naming known links."""
        return self._ready("frame_pose", frame)(q, out=out)

    def frame_jacobian(self, q: Any, frame: str, out: Any = None) -> Any:
        """J (6, nv): (velocity of the frame's origin, angular velocity), both in ground axes, = J v."""
        return self._ready("frame_jacobian", frame)(q, out=out)

    # --- compilation ---

    def compiled(self, function: str, frame: str | None = None) -> Compiled | Interpreted:
        """The compiled form of one of the functions above, with its operation count and shapes."""
        key = function, frame
        if key not in self._functions:
            fn, inputs, outputs = self._definition(function, frame)
            self._functions[key] = compile(fn, inputs, function, outputs)
        return self._functions[key]

    def _ready(self, function: str, frame: str | None = None) -> Callable[..., Any]:
        """Compile on first use; from then on the method of this object is the native function itself."""
        native = self.compiled(function, frame).native
        if frame is None:
            self.__dict__[function] = native
        return native

    def _definition(self, function: str, frame: str | None) -> tuple[Callable[..., Any], list[Port], list[Port]]:
        nq, nv = (self.nq,), (self.nv,)
        q, v, qdd, tau = Port("q", nq), Port("v", nv), Port("qdd", nv), Port("tau", nv)
        inputs, shapes = {
            "forward_dynamics": ([q, v, tau], [nv]),
            "inverse_dynamics": ([q, v, qdd], [nv]),
            "hybrid_dynamics": ([q, v, qdd, tau, Port("prescribed", nv, boolean=True)], [nv, nv]),
            "inertia_effort": ([q, qdd], [nv]),
            "friction_effort": ([v], [nv]),
            "mass_matrix": ([q], [nv * 2]),
            "kinetic_energy": ([q, v], [()]),
            "potential_energy": ([q], [()]),
            "frame_pose": ([q], [(4, 4)]),
            "frame_jacobian": ([q], [(6, self.nv)]),
        }[function]
        fn: Callable[..., Any] = getattr(self.pure, function)
        if frame is not None:
            if frame not in self._tree.frames:
                raise InputError(f"link '{frame}' does not exist{did_you_mean(frame, self._tree.frames)}")
            body, pose = self._tree.frames[frame]
            rule = fn
            fn = lambda q: rule(q, body, pose)  # noqa: E731
        return fn, inputs, [Port(f"out{i}", s) for i, s in enumerate(shapes)]
