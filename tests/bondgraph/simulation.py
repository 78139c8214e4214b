"""Assembled graphs integrated by scipy over machine code: the reference of several tests."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.core.compile.jacobian import Jacobian
from cosim.mechanics.bondgraph import Assembly, BondGraph, Se, Sf, assemble
from tests.bondgraph.graphs import given

Inputs = Callable[[float], Mapping[str, float]]


class Simulation:
    """The states, and the energies supplied and dissipated [J], at the given times."""

    def __init__(
        self,
        assembly: Assembly,
        times: Any,
        inputs: Inputs = lambda _: {},
        rtol: float = 1e-7,
        start: Mapping[str, float] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        """start: states that do not begin at their initial value; options: of `solve_ivp`."""
        names = [state.name for state in assembly.states]
        self.assembly, self.names, self.t, self.inputs = assembly, names, np.asarray(times, dtype=float), inputs

        def rates(t: Any, x: Any, u: Any) -> Any:
            given = {name: u[k] for k, name in enumerate(assembly.inputs)} | dict.fromkeys(
                assembly.rates_of_inputs, 0.0
            )
            dx, known = assembly.flow(t, {name: x[k] for k, name in enumerate(names)}, given)
            supplied = ops.sum(assembly.supplied(known).values())
            lost = ops.sum(assembly.dissipated(known).values())
            return ops.array([*dx.values(), supplied, lost])

        sizes = {"t": (), "x": (len(names) + 2,), "u": (len(assembly.inputs),)}
        compiled = compile(rates, [ArrayPort(*item) for item in sizes.items()], "rates", interpret=False)

        def flow(t: float, x: np.ndarray) -> np.ndarray:
            return np.array(compiled(np.array(t), x, np.array([*inputs(t).values()], dtype=float)))

        first = np.array([*{**assembly.initial(), **start}.values(), 0.0, 0.0], dtype=float)
        options = {"method": "Radau", "rtol": rtol, "atol": 1e-11, **options}
        if options["method"] == "Radau":
            jacobian = Jacobian(lambda x, t, u: rates(t, x, u), [sizes["x"], (), sizes["u"]], "slope")
            options["jac"] = lambda t, x: jacobian(x, t, np.array([*inputs(t).values()], dtype=float))
        found = solve_ivp(flow, (0.0, self.t[-1]), first, t_eval=self.t, **options)
        assert found.success, found.message
        assert not assembly.rates_of_inputs or inputs(0.0) == inputs(self.t[-1])  # their rates are taken as 0
        self.states = dict(zip(names, found.y, strict=False))
        self.supplied, self.dissipated = found.y[-2:]

    def __getitem__(self, state: str) -> np.ndarray:
        return self.states[state]

    def known(self, k: int = -1) -> Any:
        """Every variable of the graph at time k."""
        x = {name: values[k] for name, values in self.states.items()}
        at_rest = dict.fromkeys(self.assembly.rates_of_inputs, 0.0)
        return self.assembly.solve(self.t[k], x, {**at_rest, **self.inputs(self.t[k])})

    def stored(self, k: int = -1) -> float:
        return float(sum(self.assembly.stored(self.known(k)).values()))

    def energy_gap(self) -> float:
        """|supplied − dissipated − change of the stored energy| over the largest of them, at the end."""
        supplied, dissipated, change = self.supplied[-1], self.dissipated[-1], self.stored(-1) - self.stored(0)
        return abs(supplied - dissipated - change) / max(abs(supplied), abs(dissipated), abs(change))


def moved(graph: BondGraph, duration: float, method: str = "DOP853", steps: int = 1, **options: Any) -> Simulation:
    """The graph at equal times, `steps` from its initial state to the duration [s]."""
    return Simulation(assemble(graph), np.linspace(0.0, duration, steps + 1), method=method, atol=1e-12, **options)


def bench(component: BondGraph, sources: Mapping[str, tuple[str, str]], **inputs: str) -> Assembly:
    """A component on sources that are inputs: port -> (input, unit). The unit V or N*m makes a source of effort, rad/s
    one of flow. inputs: further ones, name -> unit."""
    graph = BondGraph(inputs={name: unit for name, unit in sources.values()} | inputs)
    graph.include("part", component)
    for port, (name, unit) in sources.items():
        domain = "electrical" if unit == "V" else "rotational"
        graph.add(name, (Sf if unit == "rad/s" else Se)(domain, given(name)))
        graph.bond(name, f"part.{port}")
    return assemble(graph)
