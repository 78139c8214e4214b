"""Bond graphs of drives that hold some of their inputs between samples, of one joint or of several.

    command ─▶ sampler of each joint ─▶ held inputs ─▶ graph ─▶ joints
                        └────────── states and signals ──┘

The state is that of the graph and, beside it, what each sampler holds; of several joints their names begin with the
joint and a dot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from cosim.core.layout import zeros_like
from cosim.core.types import ACTUATOR_INPUTS, SETPOINTS, LoopCut, Numeric, Parameters, Signals, State
from cosim.mechanics.bondgraph import BondGraph
from cosim.plugins.actuators._graph_actuator import JOINT, ONE_JOINT, GraphActuator


class DriveSampler(Protocol):
    """What a drive does at its samples. Names are those of a drive alone. Between samples its states have the rate 0,
    beside those of `rates`."""

    period: float  # s
    mode: str  # what it follows of the command of its joint: effort, velocity or position
    braking_effort: float | None  # of a holding brake
    signals: Signals  # recorded beside those of the graph
    reads_signals: bool  # whether a sample needs what the graph records

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        """Its states before the first sample; those of its graph that begin otherwise than there, too."""
        ...

    def inputs(self, x: State) -> dict[str, Numeric]:
        """Of the graph, that it gives."""
        ...

    def rates(self, x: State, y: Mapping[str, Numeric]) -> State:
        """Of its states that move between samples; y: what the graph records."""
        ...

    def recorded(self, x: State, graph: State) -> dict[str, Numeric]:
        """The values of `signals`; graph: states of the drive in its graph."""
        ...

    def sampled(self, x: State, graph: State, u: Mapping[str, Numeric], y: Mapping[str, Numeric]) -> State:
        """Its states after a sample. graph: states of the drive in its graph; u: ACTUATOR_INPUTS and SETPOINTS; y: what
        the graph records, where it `reads_signals`."""
        ...


@dataclass(frozen=True)
class SamplerInGraph:
    """A sampler in a graph. before, inside: what the names of its signals, and of the elements of its drive, begin
    with."""

    graph: SampledGraph
    sampler: DriveSampler
    before: str
    inside: str

    @property
    def period(self) -> float:
        return self.sampler.period

    @property
    def mode(self) -> str:
        return self.sampler.mode

    @property
    def braking_effort(self) -> float | None:
        return self.sampler.braking_effort

    @property
    def cuts(self) -> dict[str, LoopCut]:
        """Of the loops of the sampler."""
        own: dict[str, LoopCut] = getattr(self.sampler, "cuts", {})
        return {name: each._replace(output=self.before + each.output) for name, each in own.items()}

    def initial(self, position: Numeric, velocity: Numeric, graph: State) -> State:
        """Its states, and those of the graph that begin otherwise."""
        found = self.sampler.initial(position, velocity)
        begun = {self.inside + name: value for name, value in found.items() if self.inside + name in graph}
        return begun | self.named({name: found[name] for name in self._names})

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """Of the states of the sampler; those of graphs are signals of elements, with a dot."""
        return tuple(name for name in self.sampler.initial(0.0, 0.0) if "." not in name)

    def held(self, x: State) -> State:
        """The states of the sampler in the state of the graph."""
        return {name: x[self.before + name] for name in self._names}

    def named(self, values: Mapping[str, Numeric]) -> dict[str, Numeric]:
        return {self.before + name: value for name, value in values.items()}

    def own(self, values: Mapping[str, Numeric], before: str) -> dict[str, Numeric]:
        return {name.removeprefix(before): value for name, value in values.items() if name.startswith(before)}

    def update(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> State:
        """What a sample changes. u: inputs of the graph, and SETPOINTS of this joint, under their names there."""
        y = self.own(self.graph.flow(t, p, x, u)[1], self.before) if self.sampler.reads_signals else {}
        of_joint = {name: u[self.before + name] for name in (*ACTUATOR_INPUTS, *SETPOINTS)}
        return self.named(self.sampler.sampled(self.held(x), self.own(x, self.inside), of_joint, y))


class SampledGraph(GraphActuator):
    """A graph whose drives are sampled, some or all; `sampled` has those by what their names begin with. See
    `SharedActuator` in `cosim.core.types`."""

    def __init__(
        self,
        params: Parameters,
        graph: BondGraph,
        outputs: Mapping[str, str],
        moving: Mapping[str, Numeric],
        samplers: Mapping[str, DriveSampler],
        joints: Mapping[str, str] = ONE_JOINT,
        inside: Mapping[str, str] | None = None,
    ) -> None:
        """graph, outputs, moving, joints: as of `GraphActuator`; samplers: joint -> its sampler; inside: joint -> what
        the names of the elements of its drive begin with. Raises GraphError as that does."""
        super().__init__(params, graph, outputs, moving, joints)
        places = inside or {JOINT: ""}
        self.sampled = {
            joints[joint]: SamplerInGraph(self, sampler, joints[joint], places[joint])
            for joint, sampler in samplers.items()
        }
        self.outputs: Signals = dict(self.outputs)
        for before, one in self.sampled.items():
            self.outputs |= {before + name: signal for name, signal in one.sampler.signals.items()}

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        graph = super().initial(position, velocity)
        state = dict(graph)
        for number, before in enumerate(self.joints.values()):
            if before in self.sampled:
                q, v = (of[number] if np.ndim(of) else of for of in (position, velocity))
                state |= self.sampled[before].initial(q, v, graph)
        return state

    def flow(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        dx, y = super().flow(t, p, x, self._with_held(x, u))
        rates = zeros_like(x) | dx
        for before, one in self.sampled.items():
            held = one.held(x)
            rates |= one.named(one.sampler.rates(held, one.own(y, before)))
            y = y | one.named(one.sampler.recorded(held, one.own(x, one.inside)))
        return rates, y

    def by_acceleration(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> tuple[Numeric, Numeric]:
        return super().by_acceleration(t, p, x, self._with_held(x, u))

    def _with_held(self, x: State, u: Mapping[str, Numeric]) -> dict[str, Numeric]:
        """The inputs of the graph."""
        given = dict(u)
        for one in self.sampled.values():
            given |= one.named(one.sampler.inputs(one.held(x)))
        return given


class SampledDrive(SampledGraph):
    """A sampled drive of one joint. See `SampledActuator` in `cosim.core.types`."""

    def __init__(
        self,
        params: Parameters,
        graph: BondGraph,
        outputs: Mapping[str, str],
        moving: Mapping[str, Numeric],
        sampler: DriveSampler,
    ) -> None:
        """As of `SampledGraph`."""
        super().__init__(params, graph, outputs, moving, {JOINT: sampler})
        self.period, self.mode, self.braking_effort = sampler.period, sampler.mode, sampler.braking_effort
        self.cuts = self.sampled[ONE_JOINT[JOINT]].cuts

    def update(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> State:
        return self.sampled[ONE_JOINT[JOINT]].update(t, p, x, u)
