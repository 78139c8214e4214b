"""The loops that simulated drives close between ticks: position, velocity and sampled current, and their margins.

Each is cut at its own samples, see `LoopCut`, in the derivative of the tick: a position loop at its position error, a
velocity loop at the effort that it requests, feedforward apart, and a current loop at the voltage of an axis. All other
loops are closed. The samples in the hyper-period are the channels of a lifted system, see `circle`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from cosim.apps.analysis.circle import SampledSystem, system_of
from cosim.apps.analysis.frequency import has_growth
from cosim.apps.analysis.linearisation import (
    Slopes,
    calls_in,
    cuts_of,
    hyper_period,
    observable,
    places_of,
    with_first_calls,
)
from cosim.apps.analysis.loops import Margins, crossover_of, is_closed, margins_of, sensitivity_peak
from cosim.apps.analysis.plant_steps import PlantSteps
from cosim.core.types import SETPOINTS, Array
from cosim.simulation.tick.tick_model import TickModel

HELD = ("request", *SETPOINTS)  # of the arguments of a tick of the plant, with the request, each (nv,)


@dataclass(frozen=True)
class InnerLoopFigures:
    """The figures of a loop in the drive of a dof, the others closed. period [s]: of its samples; locked: whether the
    joint is, by a brake for example; the others as of `LoopFigures`. margins: None for an unstable rig."""

    dof: str
    loop: str
    period: float
    locked: bool
    crossover: float
    peak_sensitivity: float
    peak_frequency: float
    margins: Margins | None


@dataclass(eq=False)
class _Tap:
    """A loop and its cut. row: of what it gives in the state of the plant; held: of the setpoint in what a tick of the
    plant holds; columns: of its disturbances; seen: of each sample so far, what it gives, by all columns."""

    dof: str
    name: str
    row: int
    held: int | None
    columns: range
    seen: list[Array]

    @property
    def complete(self) -> bool:
        """Whether each of its samples has been seen."""
        return len(self.seen) == len(self.columns)

    @property
    def next(self) -> int:
        """The column of the disturbance of its next sample."""
        return self.columns[len(self.seen)]


def inner_loop_figures(
    tick_model: TickModel, memory: Array, slopes: Slopes, dofs: Collection[str], stable: bool
) -> list[InnerLoopFigures]:
    """Of the loops that are closed in the drives of these dofs, of a tick that begins with this memory. slopes: of its
    calls; stable: whether no mode of the rig grows."""
    plant, where = tick_model.plant, tick_model.layout.place("plant").where
    state = plant.layout.unpack(with_first_calls(tick_model, memory)[where])
    locked = np.asarray(plant.locked_or_imposed(state), dtype=bool)
    return [
        InnerLoopFigures(
            dof,
            name,
            period,
            bool(locked[plant.model.dof_index(dof)]),
            crossover_of(feedback) / period,
            (top := sensitivity_peak(feedback)).value,
            top.angle / period,
            margins_of(feedback, period) if stable and not has_growth(feedback.A) else None,
        )
        for dof, name, period, feedback in inner_loops(tick_model, memory, slopes, dofs)
    ]


def inner_loops(
    tick_model: TickModel, memory: Array, slopes: Slopes, dofs: Collection[str]
) -> Iterator[tuple[str, str, float, SampledSystem]]:
    """(dof, name of the loop, period of its samples [s], S − I with its samples in the hyper-period lifted)."""
    ticks = hyper_period(tick_model)
    taps = _taps(tick_model, ticks, dofs)
    found, _ = slopes
    steps = found["advance"]
    if not taps or not isinstance(steps, PlantSteps):
        return
    size, whole = tick_model.layout.size, tick_model.layout.size + taps[-1].columns.stop
    derivative, written = np.eye(size, whole), np.zeros(size, dtype=bool)
    derivative[tick_model.layout.place("t").where] = 0.0
    memory = with_first_calls(tick_model, memory)
    for _, call in calls_in(tick_model, memory, ticks):
        inputs, results = places_of(call)
        if call.name == "advance":
            derivative[results] = _tapped(steps, memory[inputs], derivative[inputs], taps, size)
        else:
            derivative[results] = found[call.name](memory[inputs]) @ derivative[inputs]
        written[results] = True
    closed = [tap for tap in taps if tap.complete]
    outputs = np.vstack([np.zeros((0, whole)), *(np.array(tap.seen) for tap in closed)])
    states = observable(derivative[:, :size], outputs[:, :size], written)
    A = derivative[np.ix_(states, states)]
    for tap in closed:
        C, columns = np.array(tap.seen), size + np.array(tap.columns)
        D = C[:, columns] - np.eye(len(columns))
        feedback = system_of(A, derivative[np.ix_(states, columns)], C[:, states], D)
        feedback = replace(feedback, lifted=len(columns) > 1)
        if is_closed(feedback):
            yield tap.dof, tap.name, ticks * tick_model.step / len(columns), feedback


def _taps(tick_model: TickModel, ticks: int, dofs: Collection[str]) -> list[_Tap]:
    plant, found, begin = tick_model.plant, list[_Tap](), 0
    for name, samples in tick_model.samples.items():
        owner = plant.sampled_joints[name].drive
        for loop, cut in cuts_of(tick_model, name).items() if name in dofs else ():
            count = ticks * samples // cut.every
            row = plant.layout.place("actuators", owner, cut.output).where.start
            dof = plant.model.dof_index(name)
            held = None if cut.setpoint is None else HELD.index(cut.setpoint) * tick_model.nv + dof
            found.append(_Tap(name, loop, row, held, range(begin, begin + count), []))
            begin += count
    return found


def _tapped(steps: PlantSteps, z: Array, by_all: Array, taps: list[_Tap], first: int) -> Array:
    """The derivative of the state of the plant after its tick, by all columns, of which the disturbances begin with
    `first`. z, by_all: the arguments of the tick, and their derivatives."""
    found, held = by_all[1 : 1 + steps.nx], by_all[1 + steps.nx :]
    for step in steps.steps(z):
        due = [tap for tap in taps if tap.dof in step.dofs and not tap.complete]
        gains = [_gain(tap, step.samples, steps.nx) for tap in due]
        given = held.copy()
        for tap, gain in zip(due, gains, strict=True):
            if tap.held is not None and gain:
                given[tap.held, first + tap.next] += 1.0 / gain
        found = steps.sampled(step, found, given)
        for tap, gain in zip(due, gains, strict=True):
            if tap.held is None:
                found[tap.row, first + tap.next] += 1.0
            if gain:
                tap.seen.append(found[tap.row].copy())
        found = steps.moved(step, found, held)
    return found


def _gain(tap: _Tap, samples: Array | None, nx: int) -> float:
    """From what its disturbance is added to, to what the loop gives: 0 in samples in which it does not run, and where
    it is at its limit."""
    return 1.0 if tap.held is None or samples is None else float(samples[tap.row, 1 + nx + tap.held])
