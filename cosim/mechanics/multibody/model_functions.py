"""The functions of a `Model`: their arguments and results, one row per function, and how they become machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from cosim.core.compile import ArrayPort, Compiled, Interpreted, compile
from cosim.core.compile.native_method import CallTarget, redirect
from cosim.core.compile.trace import Shape
from cosim.core.errors import InputError, did_you_mean
from cosim.core.ops import is_symbolic
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.derivatives import DynamicsDerivatives
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.inertial_parameters import PER_BODY
from cosim.mechanics.multibody.link_regressor import LinkRegressor
from cosim.mechanics.multibody.mechanism import Mechanism
from cosim.mechanics.multibody.tree import Tree

# functions that do not depend on time
UNTIMED = {"friction_effort", "integrate", "difference", "inertia_effort", "coordinates", "chart"}


def arrays_of(equations: MechanismEquations, function: str) -> tuple[list[ArrayPort], list[ArrayPort]]:
    """(inputs, outputs) of a function of `Model`, without the name of a frame; t follows the others where it depends on
    time."""
    inputs, shapes = _table(equations)[function]
    times = [ArrayPort("t", ())] if equations.timed and function not in UNTIMED else []
    return inputs + times, [ArrayPort(f"out{i}", shape) for i, shape in enumerate(shapes)]


def _table(equations: MechanismEquations) -> dict[str, tuple[list[ArrayPort], list[Shape]]]:
    """Function -> (its arguments without time, the shapes of its results)."""
    constraints, bodies = equations.constraints, len(equations.tree.bodies)
    frames = sum(len(c.frames) for c in constraints.members)
    n = equations.nv
    nq, nv, m = (equations.nq,), (n,), (len(constraints.holonomic),)
    q, v, qdd, tau = ArrayPort("q", nq), ArrayPort("v", nv), ArrayPort("qdd", nv), ArrayPort("tau", nv)
    prescribed, by_inertia = ArrayPort("prescribed", nv, boolean=True), (n, PER_BODY * bodies)
    return {
        "forward_dynamics": ([q, v, tau], [nv]),
        "inverse_dynamics": ([q, v, qdd], [nv]),
        "forward_dynamics_derivatives": ([q, v, tau], [nv * 2] * 3),
        "inverse_dynamics_derivatives": ([q, v, qdd], [nv * 2] * 3),
        "link_regressor": ([q, v, qdd], [(n, PER_BODY)]),
        "hybrid_dynamics": ([q, v, qdd, tau, prescribed], [nv, nv]),
        "hybrid_dynamics_derivatives": ([q, v, qdd, tau, prescribed], [nv * 2] * 3),
        "inverse_dynamics_regressor": ([q, v, qdd], [by_inertia]),
        "forward_dynamics_regressor": ([q, v, tau], [by_inertia]),
        "reactions": ([q, v, tau], [m]),
        "reactions_derivatives": ([q, v, tau], [m + nv] * 3),
        "constraint_wrenches": ([q, v, tau], [(frames, 6)]),
        "joint_wrenches": ([q, v, tau], [(bodies, 6)]),
        "constraint_violation": ([q, v], [(sum(constraints.holonomic),), m]),
        "constraint_jacobian": ([q], [m + nv]),
        "inertia_effort": ([q, qdd], [nv]),
        "friction_effort": ([v], [nv]),
        "integrate": ([q, ArrayPort("d", nv)], [nq]),
        "difference": ([ArrayPort("q0", nq), ArrayPort("q1", nq)], [nv]),
        "mass_matrix": ([q], [nv * 2]),
        "kinetic_energy": ([q, v], [()]),
        "potential_energy": ([q], [()]),
        "elastic_energy": ([q], [()]),
        "mechanical_energy": ([q, v], [()]),
        "coordinates": ([ArrayPort("chart", nv)], [nq]),
        "chart": ([q], [nv]),
        "nonlinear_effects": ([q, v], [nv]),
        "gravity_effort": ([q], [nv]),
        "center_of_mass": ([q], [(3,)]),
        "center_of_mass_jacobian": ([q], [(3, n)]),
        "centroidal_momentum": ([q, v], [(6,)]),
        "centroidal_momentum_matrix": ([q], [(6, n)]),
        "frame_pose": ([q], [(4, 4)]),
        "body_poses": ([q], [(bodies, 3, 4)]),
        "frame_jacobian": ([q], [(6, n)]),
        "frame_jacobian_rate": ([q, v], [(6, n)]),
    }


class CompiledFunctions:
    """The functions of a model, compiled at their first call. places: of the names of frames among their arguments."""

    def __init__(
        self, equations: MechanismEquations, mechanism: Mechanism, tree: Tree, places: Mapping[str, int | None]
    ) -> None:
        self.equations, self._mechanism, self._tree, self._places = equations, mechanism, tree, places
        self._functions: dict[tuple[str, str | None], Compiled | Interpreted] = {}
        self.targets: dict[str, tuple[CallTarget, dict[str, Any]]] = {}  # see `MethodCode`

    def compiled(self, function: str, frame: str | None = None) -> Compiled | Interpreted:
        """See `Model.compiled`."""
        if self._places[function] is not None and not isinstance(frame, str):
            raise TypeError(f"{function}: the name of a link is a text, got {frame!r}")
        key = function, frame
        if key not in self._functions:
            fn, inputs, outputs = self.definition(function, frame)
            self._functions[key] = compile(fn, inputs, function, outputs)
        return self._functions[key]

    def _call(self, function: str, *arguments: Numeric, out: Numeric = None, frame: str | None = None) -> Numeric:
        """A function of numbers by machine code, of symbols as its equations."""
        if any(map(is_symbolic, arguments)):
            return self.definition(function, frame)[0](*arguments)
        if function == "mass_matrix" and self.equations.rolled:
            return self._mass_matrix_by_columns(arguments[0], out)
        return self._ready(function, frame)(*arguments, out=out)

    def _ready(self, function: str, frame: str | None = None) -> Callable[..., Numeric]:
        """Compile on first use; afterwards the method of the model calls the machine code."""
        code = self.compiled(function, frame)
        if isinstance(code, Compiled):
            redirect(self, function, code.native, code.call_address, frame)
        return code.native

    def _mass_matrix_by_columns(self, q: Numeric, out: Numeric) -> Array:
        """Straight-line code of n² entries is too long for many bodies: one O(n) sweep per column instead."""
        q, nv = np.asarray(q, dtype=float), self.equations.nv
        result = np.empty((*q.shape[:-1], nv, nv)) if out is None else out
        for row in np.ndindex(q.shape[:-1]):
            self._call("inertia_effort", q[row], np.eye(nv), out=result[row])
        return result

    def definition(
        self, function: str, frame: str | None = None
    ) -> tuple[Callable[..., Numeric], list[ArrayPort], list[ArrayPort]]:
        """(equations, inputs, outputs) of a function."""
        inputs, outputs = arrays_of(self.equations, function)
        source = (
            "_link_regressor"
            if function == "link_regressor"
            else "_derivatives"
            if function.endswith(("_derivatives", "_regressor"))
            else "equations"
        )
        fn: Callable[..., Numeric] = getattr(getattr(self, source), function)
        if frame is not None:
            if frame not in self._tree.given_frames:
                raise InputError(f"link '{frame}' does not exist{did_you_mean(frame, self._tree.given_frames)}")
            body, pose = self._tree.frames[frame]
            if body < 0 and function == "link_regressor":
                raise InputError(f"link '{frame}' does not move")
            if function == "link_regressor" and frame in self._elastic_links:
                raise InputError(
                    f"link '{frame}' is elastic: its efforts are not linear in ten parameters; name a rigid one"
                )
            equation, n = fn, self._places[function]
            fn = lambda *arguments: equation(*arguments[:n], body, pose, *arguments[n:])  # noqa: E731
        return fn, inputs, outputs

    @property
    def _elastic_links(self) -> set[str]:
        return {link.name for link in self._mechanism.links if link.elastic is not None}

    @cached_property
    def _derivatives(self) -> DynamicsDerivatives:
        return DynamicsDerivatives(self.equations, self.equations.nq, self.equations.nv)

    @cached_property
    def _link_regressor(self) -> LinkRegressor:
        return LinkRegressor(self.equations, self.equations.nq, self.equations.nv)
