"""An assembled bond graph as an actuator.

The graph has a 1-port source of flow `joint`, the motion that the mechanism imposes: its effort is that on the joint.
An inertia that follows the joint rigidly, in derivative causality, is part of the mechanism: `reflected_inertia`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile.trace import column, symbols
from cosim.core.types import ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, Numeric, Parameters, Signal, Signals, State
from cosim.mechanics.bondgraph import BondGraph, Element, Law, assemble
from cosim.mechanics.bondgraph.assembly import Values
from cosim.mechanics.bondgraph.domains import DOMAINS
from cosim.mechanics.bondgraph.equations import Variable
from cosim.mechanics.bondgraph.graph import GraphError

JOINT = "joint"
INPUTS = {"request": "", "position": "", "velocity": ""}


class GraphActuator:
    """A drive that is described by a bond graph, as an actuator of one joint. outputs: names of recorded signals ->
    `<element>.effort` and the like."""

    inputs = ACTUATOR_INPUTS

    def __init__(
        self,
        params: Parameters,
        graph: BondGraph,
        outputs: Mapping[str, str],
        moving: Mapping[str, Numeric] | None = None,
    ) -> None:
        """graph: bonds to `joint`, and takes the inputs `request`, `position`, `velocity`; moving: states that are
        velocities at t = 0 -> their ratio to the joint's velocity.

        Raises GraphError for a graph that cannot be, and one whose inertia on the joint changes.
        """
        graph = copy.deepcopy(graph)
        graph.inputs |= INPUTS
        # rotational or translational, which follows from its bond
        if not any(JOINT in bond for bond in graph.bonds):
            raise GraphError(
                f"no bond leads to '{JOINT}'; add one, such as gear -> joint, or free -> joint with an Se", JOINT
            )
        graph.add(JOINT, Element("Sf", (), Law(lambda velocity: velocity, ("velocity",))))
        self.params = params
        self.assembly = assemble(graph, ((signal, JOINT) for signal in outputs.values()))
        self.moves = self._unit_of_joint()
        self.recorded = {name: self.assembly.variable(signal, JOINT) for name, signal in outputs.items()}
        units = self.assembly.unit_of
        own = {name: Signal((), units(self.recorded[name]), f"{of} of the drive") for name, of in outputs.items()}
        self.outputs: Signals = {**ACTUATOR_OUTPUTS, **own}
        states = {state.name: state.unit for state in self.assembly.states}
        self.positions = tuple(name for name, unit in states.items() if unit in ("rad", "m"))
        self._functions: dict[tuple[str, ...], Any] = {}
        self._moving = {name: ratio for name, ratio in (moving or {}).items() if name in states}
        self._rigid = self._rigid_inertias()
        self.reflected_inertia: Numeric = self._inertia_at_joint()

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        state = self.assembly.initial()
        return state | {name: ops.array(ratio * velocity) for name, ratio in self._moving.items()}

    def flow(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        given = [t, *(x[name] for name in self._states), *u.values()]
        function = self._traced(tuple(u)) if any(map(ops.is_symbolic, given)) else None
        if function is None:
            return self._flow(t, x, u)
        values = ops.array(function(column(ops.array(given))).elements())
        n = len(self._states)
        return dict(zip(self._states, values, strict=False)), dict(zip(self._signals, values[n:], strict=True))

    @cached_property
    def _states(self) -> tuple[str, ...]:
        return tuple(state.name for state in self.assembly.states)

    @property
    def _signals(self) -> list[str]:
        """The outputs of the graph."""
        return [*ACTUATOR_OUTPUTS, *self.recorded]

    def _traced(self, inputs: tuple[str, ...]) -> Any:
        """`flow` as a casadi function of time, states and these inputs, which is inlined faster than traced again; None
        where it depends on further symbols."""
        if inputs not in self._functions:
            import casadi

            n = 1 + len(self._states)
            known, box = symbols("known", (n + len(inputs),))
            states = {name: box[1 + k] for k, name in enumerate(self._states)}
            dx, y = self._flow(box[0], states, {name: box[n + k] for k, name in enumerate(inputs)})
            found = [*(dx[name] for name in self._states), *(y[name] for name in self._signals)]
            function = casadi.Function("flow", [known], [column(ops.array(found))], {"allow_free": True})
            self._functions[inputs] = None if function.has_free() else function
        return self._functions[inputs]

    def _flow(self, t: Numeric, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        dx, known = self.assembly.flow(t, x, u)
        supplied = self.assembly.supplied(known)
        del supplied[JOINT]
        stored = self.assembly.stored(known)
        y = {
            "effort": self.assembly.effort(JOINT, known),
            "power": ops.sum(supplied.values()),
            "loss": ops.sum(self.assembly.dissipated(known).values()),
            "stored": ops.sum(energy for name, energy in stored.items() if name not in self._rigid),
        }
        return dx, y | {name: known[variable] for name, variable in self.recorded.items()}

    def _unit_of_joint(self) -> str:
        """Of the position of joints that it moves, rad or m. Raises GraphError for a bond of another domain."""
        domain = self.assembly.graph.domains[self.assembly.graph.at(JOINT)[0]]
        if domain not in ("rotational", "translational"):
            raise GraphError(f"its bond is {domain}; bond a rotational or translational element to it", JOINT)
        return DOMAINS[domain].displacement

    def _rigid_inertias(self) -> set[str]:
        """Inertias whose flow is a multiple of the joint's velocity."""
        of, rate = self.assembly.equations.of, Variable("input", "velocity", 1)

        def follows(variable: Variable, seen: set[Variable]) -> bool:
            if variable == rate or variable in seen or variable not in of:
                return variable == rate
            return any(follows(used, seen | {variable}) for used in of[variable].uses)

        graph = self.assembly.graph
        return {
            name
            for name in self.assembly.causality.derivative
            if graph.elements[name].kind == "I" and follows(Variable("f", graph.at(name)[0], 1), set())
        }

    def _inertia_at_joint(self) -> Numeric:
        """The effort on the joint per acceleration that it lacks. Raises GraphError where it is not constant."""
        if not self._rigid:
            return 0.0

        def inertia(scale: float) -> Numeric:
            x = {state.name: state.initial + scale for state in self.assembly.states}
            u = dict.fromkeys(self.assembly.inputs, scale)
            efforts = [self._effort(x, u | {"velocity'": a}) for a in (0.0, 1.0)]
            return efforts[0] - efforts[1]

        with np.errstate(all="ignore"):
            first, other = inertia(0.0), inertia(0.37)
        symbolic = ops.is_symbolic(first)
        if not symbolic and not np.isclose(first, other, rtol=1e-9):
            what = "it follows the joint rigidly with a ratio that changes or a friction that grows with its torque"
            raise GraphError(f"{what}; put a compliance between it and the joint", sorted(self._rigid)[0])
        return first if symbolic else float(first)

    def _effort(self, x: State, u: Mapping[str, Numeric]) -> Numeric:
        known: Values = self.assembly.solve(0.0, x, u)
        return self.assembly.effort(JOINT, known)
