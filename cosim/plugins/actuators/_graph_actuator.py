"""An assembled bond graph as an actuator of one joint, or of several.

The graph has a 1-port source of flow for each joint, such as `joint`, the motion that the mechanism imposes: the power
into it is the power on the joint. What follows its acceleration rigidly, storages in derivative causality, makes effort
and rates affine in the accelerations a of the joints:

    effort = e − B a,    ẋ = c + D a.

Inertias that turn with one joint at a constant ratio are part of the mechanism: `reflected_inertia`. Where that is not
all, the plant solves for a with B and D (`InertialActuator`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile.trace import Shape, column, symbols
from cosim.core.types import (
    ACCELERATION,
    ACTUATOR_INPUTS,
    ACTUATOR_OUTPUTS,
    Numeric,
    Parameters,
    Signal,
    Signals,
    State,
    TripLimit,
)
from cosim.mechanics.bondgraph import BondGraph, Element, Law, assemble
from cosim.mechanics.bondgraph.assembly import Assembly, Values, element_of
from cosim.mechanics.bondgraph.domains import DOMAINS
from cosim.mechanics.bondgraph.equations import Variable
from cosim.mechanics.bondgraph.graph import GraphError
from cosim.mechanics.bondgraph.rigid_motion import following
from cosim.mechanics.multibody.differentiate import Derived

JOINT = "joint"
INPUTS = {"request": "", "position": "", "velocity": ""}
# rates of the inputs of a joint -> what they are
RATES = {"position'": "velocity", "position''": ACCELERATION, "velocity'": ACCELERATION}
ONE_JOINT: Mapping[str, str] = {JOINT: ""}
# of drives with a motor and a gear
TORQUES: Signals = {
    "motor_torque": Signal((), "N*m", "torque of the motor at its shaft, behind the inertia of its rotor"),
    "gear_torque": Signal((), "joint effort", "effort of the gear on the shaft of the joint, before friction there"),
}


class GraphActuator:
    """A drive that is described by a bond graph, as an actuator of one joint. outputs: names of recorded signals ->
    `<element>.effort` and the like."""

    inputs = ACTUATOR_INPUTS
    longest_step = math.inf  # s, of the substeps of its plant: what it does within them would not be seen
    doubts: tuple[str, ...] = ()  # warnings of its parameters, with their joints where it moves several
    temperatures: Mapping[str, float | None] = MappingProxyType({})  # recorded rises -> their limits [K]
    for_other_joints = "end its graph with a TF to that domain"  # the fix for joints that move in the other domain
    trips: tuple[TripLimit, ...] = ()  # beyond which a run stops
    for_joint: Mapping[str, str] = MappingProxyType({})  # the same, by joint in its graph, where it is of a drive there

    def __init__(
        self,
        params: Parameters,
        graph: BondGraph,
        outputs: Mapping[str, str],
        moving: Mapping[str, Numeric] | None = None,
        joints: Mapping[str, str] = ONE_JOINT,
    ) -> None:
        """graph: bonds to the joints, and takes the inputs `request`, `position`, `velocity` of each; moving: states
        that are velocities at t = 0 -> their ratio to the joint's velocity, of several joints one each; joints: source
        of flow -> what the names of its inputs and of its effort begin with.

        Raises GraphError for a graph that cannot be, and one that needs the rate of a sampled input.
        """
        graph = copy.deepcopy(graph)
        graph.inputs |= {before + name: "" for before in joints.values() for name in INPUTS}
        for joint, before in joints.items():
            # rotational or translational, which follows from its bond
            if not any(joint in bond for bond in graph.bonds):
                fix = f"add one, such as gear -> {joint}, or free -> {joint} with an Se"
                raise GraphError(f"no bond leads to '{joint}'; {fix}", joint)
            graph.add(joint, Element("Sf", (), Law(lambda velocity: velocity, (f"{before}velocity",))))
        self.params, self.joints, self.origins = params, dict(joints), graph.origins
        first = next(iter(joints))
        self.assembly = assemble(graph, ((signal, first) for signal in outputs.values()))
        self._rates = _rates_of_motion(self.assembly, joints.values())
        self.units = {before: self._unit_of(joint) for joint, before in joints.items()}
        self.moves = self.units[joints[first]]
        self.recorded = {name: self.assembly.variable(signal, first) for name, signal in outputs.items()}
        units = self.assembly.unit_of
        own = {name: Signal((), units(self.recorded[name]), f"{of} of the drive") for name, of in outputs.items()}
        self.outputs: Signals = {**ACTUATOR_OUTPUTS, **own}
        states = {state.name: state.unit for state in self.assembly.states}
        self.positions = tuple(name for name, unit in states.items() if unit in ("rad", "m"))
        self._functions: dict[tuple[str, ...], Any] = {}
        self._moving = {name: ratio for name, ratio in (moving or {}).items() if name in states}
        self._rigid = self._rigid_inertias()
        self.reflected = {before: self._reflected(before) for before in joints.values()}
        self.follows_acceleration, self.is_inertial = self._inertial()
        self.is_linear_in_acceleration = True
        if self.is_inertial:
            self._check_slope()

    @property
    def reflected_inertia(self) -> Numeric:
        """Of what turns rigidly with the joint, at a constant ratio; part of the mechanism [kg m² or kg]."""
        return self.reflected[ONE_JOINT[JOINT]]

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        state = self.assembly.initial()
        return state | {
            name: ops.array(np.dot(ratio, velocity) if np.ndim(ratio) else ratio * velocity)
            for name, ratio in self._moving.items()
        }

    # --- equations ---

    def flow(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        given = [t, *(x[name] for name in self.states), *u.values()]
        function = self._traced(tuple(u)) if any(map(ops.is_symbolic, given)) else None
        if function is None:
            return self._flow(t, x, u)
        values = ops.array(function(column(ops.array(given))).elements())
        n = len(self.states)
        return dict(zip(self.states, values, strict=False)), dict(zip(self._signals, values[n:], strict=True))

    @cached_property
    def states(self) -> tuple[str, ...]:
        return tuple(state.name for state in self.assembly.states)

    @property
    def _signals(self) -> list[str]:
        """The outputs of the graph."""
        efforts = [f"{before}effort" for before in self.joints.values()]
        return [*efforts, "power", "loss", "stored", *self.recorded]

    def _traced(self, inputs: tuple[str, ...]) -> Any:
        """`flow` as a casadi function of time, states and these inputs, which is inlined faster than traced again; None
        where it depends on further symbols."""
        if inputs not in self._functions:
            import casadi

            n = 1 + len(self.states)
            known, box = symbols("known", (n + len(inputs),))
            states = {name: box[1 + k] for k, name in enumerate(self.states)}
            dx, y = self._flow(box[0], states, {name: box[n + k] for k, name in enumerate(inputs)})
            found = [*(dx[name] for name in self.states), *(y[name] for name in self._signals)]
            function = casadi.Function("flow", [known], [column(ops.array(found))], {"allow_free": True})
            self._functions[inputs] = None if function.has_free() else function
        return self._functions[inputs]

    def _flow(self, t: Numeric, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        dx, known = self._solved(t, x, u)
        supplied = self.assembly.supplied(known)
        for joint in self.joints:
            del supplied[joint]
        stored = self.assembly.stored(known)
        y = {f"{before}effort": self._on_joint(joint, known, u) for joint, before in self.joints.items()} | {
            "power": ops.sum(supplied.values()),
            "loss": ops.sum(self.assembly.dissipated(known).values()),
            "stored": ops.sum(energy for name, energy in stored.items() if name not in self._rigid),
        }
        return dx, y | {name: known[variable] for name, variable in self.recorded.items()}

    def _solved(self, t: Numeric, x: State, u: Mapping[str, Numeric]) -> tuple[State, Values]:
        """(ẋ, every variable); an acceleration that is not given is 0."""
        return self.assembly.flow(t, x, {**u, **{rate: u.get(what, 0.0) for rate, what in self._rates.items()}})

    def _on_joint(self, joint: str, known: Values, u: Mapping[str, Numeric]) -> Numeric:
        """The effort on a joint, plus what of the reflected inertia is in the mechanism: at any acceleration
        of the joint it is the effort of the rest."""
        before, graph = self.joints[joint], self.assembly.graph
        effort, (bond,) = self.assembly.effort(joint, known), graph.at(joint)
        effort = effort if graph.sign(joint, bond) > 0 else -effort
        acceleration = before + ACCELERATION
        if acceleration not in u or ops.is_zero(self.reflected[before]):
            return effort
        return effort + self.reflected[before] * u[acceleration]

    # --- what follows the accelerations of joints ---

    def by_acceleration(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> tuple[Numeric, Numeric]:
        """(B (m, m), D (states, m)): −∂effort/∂a and ∂ẋ/∂a by the accelerations a of the m joints, in their order."""
        given = ops.array([t, *(x[name] for name in self.states), *(u[name] for name in self.assembly.inputs)])
        at = ops.array([u.get(before + ACCELERATION, 0.0) for before in self.joints.values()])
        B, D = self._slope(given, at)
        return B, D

    @cached_property
    def _slope(self) -> Derived:
        import casadi

        n, m = len(self.states), len(self.joints)

        def make(columns: Sequence[Numeric], arrays: Sequence[Numeric]) -> list[tuple[Numeric, Shape]]:
            x = dict(zip(self.states, arrays[0][1:], strict=False))
            u = dict(zip(self.assembly.inputs, arrays[0][1 + n :], strict=True))
            u |= {before + ACCELERATION: arrays[1][k] for k, before in enumerate(self.joints.values())}
            dx, y = self._flow(arrays[0][0], x, u)
            efforts = column(ops.array([y[f"{before}effort"] for before in self.joints.values()]))
            rates = column(ops.array([dx[name] for name in self.states])) if n else casadi.SX(0, 1)
            return [(-casadi.jacobian(efforts, columns[1]), (m, m)), (casadi.jacobian(rates, columns[1]), (n, m))]

        return Derived("by_acceleration", [(1 + n + len(self.assembly.inputs),), (m,)], make)

    def _rigid_inertias(self) -> dict[str, tuple[str, Numeric]]:
        """Inertias whose flow is a constant multiple of the velocity of one joint -> (its prefix, the ratio)."""
        graph = self.assembly.graph
        velocities = {Variable("f", graph.at(joint)[0]): before for joint, before in self.joints.items()}
        flows = following(self.assembly, frozenset(velocities))
        found = {}
        for name in self.assembly.causality.derivative:
            form = flows[Variable("f", graph.at(name)[0])]
            if graph.elements[name].kind == "I" and form.alone and len(form.ratios) == 1:
                ((velocity, ratio),) = form.ratios.items()
                found[name] = velocities[velocity], ratio
        return found

    def _reflected(self, before: str) -> Numeric:
        elements = self.assembly.graph.elements
        inertias = [elements[name].value * r * r for name, (of, r) in self._rigid.items() if of == before]
        total = ops.sum(inertias) if inertias else 0.0
        return total if ops.is_symbolic(total) else float(total)

    def _inertial(self) -> tuple[bool, bool]:
        """(Whether anything follows the acceleration of a joint, whether the motion does, beyond the reflected
        inertias)."""
        assembly, joints = self.assembly, self.joints
        accelerations = {
            assembly.rates_of_inputs[rate]: what.removesuffix(ACCELERATION)
            for rate, what in self._rates.items()
            if what.endswith(ACCELERATION)
        }
        if not accelerations:
            return False, False
        graph = assembly.graph
        own_rates = {Variable("f", graph.at(joint)[0], 1): before for joint, before in joints.items()}
        accelerations |= {
            variable: before for variable, before in own_rates.items() if variable in assembly.equations.of
        }
        forms = following(assembly, frozenset(accelerations))
        moving = [Variable("rate", name) for name in assembly.equations.states]
        powers = [name for name in (*assembly.supplied_by, *assembly.dissipated_by) if name not in joints]
        moving += [Variable(side, graph.at(name)[0]) for name in powers for side in ("e", "f")]
        if any(forms[variable].follows for variable in moving):
            return True, True
        for joint, before in joints.items():
            (bond,) = graph.at(joint)
            form, inertia = forms[Variable("e", bond)], 0.0
            for variable, ratio in form.ratios.items():
                inertia = inertia - graph.sign(joint, bond) * ratio if accelerations[variable] == before else np.nan
            if form.varies or not _equal(inertia, self.reflected[before]):
                return True, True
        return True, False

    def _check_slope(self) -> None:
        """Whether effort and rates are affine in the accelerations. Raises GraphError where they are not even piece by
        piece: friction that grows with a torque has a bend where that changes its sign."""
        self.is_linear_in_acceleration, bends = self._slope.depends_on(1)
        if bends:
            what = "what it does depends on the acceleration of the joint by a law that is not linear"
            raise GraphError(f"{what}; put a compliance between it and the joint", next(iter(self.joints)))

    def _unit_of(self, joint: str) -> str:
        """Of the position of joints that it moves, rad or m. Raises GraphError for a bond of another domain."""
        domain = self.assembly.graph.domains[self.assembly.graph.at(joint)[0]]
        if domain not in ("rotational", "translational"):
            raise GraphError(f"its bond is {domain}; bond a rotational or translational element to it", joint)
        return DOMAINS[domain].displacement


def _rates_of_motion(assembly: Assembly, prefixes: Iterable[str]) -> dict[str, str]:
    """Rate of an input that the graph uses -> the input that it is. Raises GraphError for one that nothing gives."""
    known = {before + rate: before + what for before in prefixes for rate, what in RATES.items()}
    for rate, variable in assembly.rates_of_inputs.items():
        if rate not in known:
            user = next(v for v, equation in assembly.equations.of.items() if variable in equation.uses)
            what = f"its motion needs the rate of '{variable.of}', which is sampled and jumps"
            if str(variable.of).endswith("velocity"):
                what = "it needs the rate of the joint's acceleration"
            fix = "put a compliance between it and what gives its flow"
            raise GraphError(f"{what}; {fix}", element_of(assembly.equations, user))
    return {rate: known[rate] for rate in assembly.rates_of_inputs}


def _equal(a: Numeric, b: Numeric) -> bool:
    """Symbols are equal where they are the same for numbers."""
    if ops.is_symbolic(a) or ops.is_symbolic(b):
        import casadi

        free = casadi.symvar(casadi.vertcat(casadi.SX(a), casadi.SX(b)))  # one may cancel in their difference
        values = np.random.default_rng(0).uniform(0.5, 2.0, len(free))
        a, b = (float(casadi.Function("f", free, [casadi.SX(of)])(*values)) for of in (a, b))
    return bool(np.isclose(a, b, rtol=1e-9, atol=0.0))
