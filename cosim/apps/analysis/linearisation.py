"""A tick of a rig linearised at a state: x(k + 1) = A x(k) + B d(k), y(k) = C x(k) + D d(k).

The derivative of a tick is the product of the derivatives of its calls, each exact. The time, parameters and
the modes of the plant are held; contacts stay open, stick or slide as they do in the tick; encoders measure without
their quantisation; a saturation has the slope that it has at the state. Disturbances d enter where loops are broken:
efforts requested of the drives, and measured positions.

Tasks of several rates repeat after a hyper-period, the least common multiple of their ticks. k then counts
hyper-periods, and A is the product of the derivatives of their ticks (the monodromy matrix; Bittanti and Colaneri,
Periodic Systems, 2009, §3). A loop is seen at the rate of its controller: its disturbances change with each call of the
controller and are held until the next one, and its outputs are taken in the ticks in which it is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cosim.apps.analysis.held_springs import Springs, without_held_springs
from cosim.apps.analysis.plant_steps import PlantSteps, cut, unquantised
from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.errors import CompileError, InputError
from cosim.core.types import Array, LoopCut, Numeric
from cosim.rig.rig import Rig
from cosim.simulation.tick.memory_call import MemoryCall
from cosim.simulation.tick.tick_model import TickModel

Slope = Callable[[Array], Array]  # inputs of a call as one vector (n,) -> derivatives of its outputs (m, n)
Slopes = tuple[dict[str, Slope], bool]  # see slopes_of
MOST_TICKS = 1000  # of a hyper-period


@dataclass(frozen=True)
class LinearRig:
    """The tick of a rig at a state, or its hyper-period.

    A (n, n), B (n, 2 nv), C (2 nv, n), D (2 nv, 2 nv): inputs are disturbances of the efforts requested of the drives
    (nv,), then of the measured positions (nv,); outputs the requested efforts with their disturbance, then the
    measured positions without it. step, t: of a tick or hyper-period, and of the state [s]; states: of what each is a
    part, such as 'controller arm'; dofs: names of the nv dofs; exact: whether A is the derivative of the tick itself,
    else the plant moves by the exponential of its equations. ticks: of the hyper-period; phases (nv,): the tick in
    which the controller of a dof is called, None of one that is called more often, whose loop varies within the
    hyper-period: its disturbances and outputs are not connected.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    step: float
    t: float
    states: tuple[str, ...]
    dofs: tuple[str, ...]
    exact: bool
    ticks: int
    phases: tuple[int | None, ...]


def linearise(rig: Rig, at: float = 0.0) -> LinearRig:
    """Linearise the tick of a rig after `at` seconds of its run.

    Raises InputError for a rig with real motors, with tasks that do not repeat soon, and with a controller without
    derivative, and where the run stops before.
    """
    tick_model = rig.tick_model
    check_linear(rig, tick_model)
    return linearise_at(tick_model, memory_at(rig, at))


def memory_at(rig: Rig, at: float) -> Array:
    """The memory of the rig between two ticks, after `at` seconds. Raises InputError where the run stops before."""
    ticks = round(at / rig.tick_model.step)
    if not ticks:
        return rig.tick_model.memory()
    with rig.scheduler() as scheduler:
        scheduler.prepare()
        scheduler.arm()
        scheduler.start(ticks)
        while scheduler.read_view() is not None:
            pass
        if scheduler.fault:
            raise InputError(f"the run stops before: {scheduler.fault}", "--at")
        memory = scheduler.engine.memory.copy()
    memory[rig.tick_model.layout.place("t").where] = ticks * rig.tick_model.step
    return memory


def linearise_at(tick_model: TickModel, memory: Array, slopes: Slopes | None = None) -> LinearRig:
    """Of the tick that begins with this memory (see `TickModel.initial`); slopes: of its calls, if they are known."""
    found, exact = slopes_of(tick_model) if slopes is None else slopes
    nv, size, place = tick_model.nv, tick_model.layout.size, tick_model.layout.place
    request, measured = (place(*path).where for path in (("request",), ("measured", "position")))
    ticks, phases, begun = hyper_period(tick_model), _phases(tick_model), float(memory[place("t").where].item())
    speeds = np.abs(memory[place("plant").where][tick_model.plant.layout.place("velocity").where])
    drift = float(speeds.max(initial=0.0)) * ticks * tick_model.step
    # rows: the memory, and the disturbances that are held; columns: both at first, and the disturbances
    whole = size + 2 * nv
    derivative = np.hstack([np.eye(whole), np.zeros((whole, 2 * nv))])
    derivative[place("t").where] = 0.0
    written = np.ones(whole, dtype=bool)
    written[:size] = False
    outputs = np.zeros((2 * nv, whole + 2 * nv))
    outputs[:nv, whole : whole + nv] = np.eye(nv)  # of dofs whose loops are not seen
    memory = with_first_calls(tick_model, memory)
    for number, call in calls_in(tick_model, memory, ticks):
        inputs, results = places_of(call)
        seen = np.array([dof for dof, phase in enumerate(phases) if phase == number % ticks], dtype=int)
        for row in (*seen, *(nv + seen)):
            derivative[size + row] = np.eye(whole + 2 * nv)[whole + row]
        derivative[results] = found[call.name](memory[inputs]) @ derivative[inputs]
        written[results] = True
        if call.name == "measure":
            outputs[nv + seen] = derivative[measured][seen]
            derivative[measured] += derivative[size + nv : whole]
        if call.name == "request":
            derivative[request] += derivative[size : size + nv]
            outputs[seen] = derivative[request][seen]
    states = observable(derivative[:, :whole], outputs[:, :whole], written)
    A, B, C = derivative[np.ix_(states, states)], derivative[states, whole:], outputs[:, states]
    if tick_model.plant.contacts:
        kept, A, B, C = without_held_springs(A, B, C, Springs.of(tick_model, states, drift))
        states = states[kept]
    names = [*parts_of(tick_model), *["held disturbance"] * (2 * nv)]
    return LinearRig(
        A,
        B,
        C,
        outputs[:, whole:],
        ticks * tick_model.step,
        begun,
        tuple(names[k] for k in states),
        tuple(tick_model.plant.model.dof_names),
        exact,
        ticks,
        phases,
    )


def calls_in(tick_model: TickModel, memory: Array, ticks: int) -> Iterator[tuple[int, MemoryCall]]:
    """(number of its tick, each call) of so many ticks from this memory on. A call changes the memory when the
    iteration goes on; the last one does not."""
    first = round(float(memory[tick_model.layout.place("t").where].item()) / tick_model.step)
    last = [call for task in tick_model.tasks for call in task.calls][-1]
    for number in range(first, first + ticks):
        memory[tick_model.layout.place("t").where] = number * tick_model.step
        for task in (task for task in tick_model.tasks if number % task.ticks == task.phase):
            for call in task.calls:
                yield number, call
                if number + 1 < first + ticks or call is not last:
                    evaluate(call, memory)


def with_first_calls(tick_model: TickModel, memory: Array) -> Array:
    """A copy of the memory in which what has not been called before this tick is as after its first call: encoders and
    controllers set the states of delays, filters and observers then, which have no dynamics before. Events that are due
    at t = 0, such as a brake that holds, happen in the first step of the plant."""
    first = round(float(memory[tick_model.layout.place("t").where].item()) / tick_model.step)
    new = [task for task in tick_model.tasks if task.loop is not None and first <= task.phase]
    if first and not new:
        return memory.copy()
    begun, called, place = memory.copy(), memory.copy(), tick_model.layout.place
    read = next(task for task in tick_model.tasks if task.name == "read")
    for call in (call for task in (read, *new) for call in task.calls):
        evaluate(call, called)
    regions = [place(what, task.name) for task in new for what in ("controllers", "controller_commands")]
    if not first:
        regions.append(place("sensors"))
        if tick_model.plant.modes:
            for call in (call for task in tick_model.tasks if task not in (read, *new) for call in task.calls):
                evaluate(call, called)
            regions.append(place("plant", "modes"))
    for where, _ in regions:
        begun[where] = called[where]
    return begun


def hyper_period(tick_model: TickModel) -> int:
    """Ticks after which tasks of several rates, and sampled loops of drives, repeat."""
    spans = [task.ticks for task in tick_model.tasks]
    for dof, samples in tick_model.samples.items():
        spans += [math.lcm(each.every, samples) // samples for each in cuts_of(tick_model, dof).values()]
    return math.lcm(*spans)


def cuts_of(tick_model: TickModel, dof: str) -> dict[str, LoopCut]:
    """Where the loops in the drive of a dof can be cut, by their names."""
    return getattr(tick_model.plant.sampled_joints[dof].part, "cuts", {})


def _phases(tick_model: TickModel) -> tuple[int | None, ...]:
    """See `LinearRig`; 0 of a dof without controller."""
    ticks, found = hyper_period(tick_model), list[int | None]([0] * tick_model.nv)
    for loop in tick_model.loops:
        for dof in loop.index.tolist():
            found[dof] = loop.phase if loop.ticks == ticks else None
    return tuple(found)


def check_linear(rig: Rig, tick_model: TickModel) -> None:
    """Raises InputError for a rig that has no linear model, see `linearise`."""
    if rig.hardware:
        raise InputError("real motors have no linear model; analyze the rig without its drivers", "analyze")
    if (ticks := hyper_period(tick_model)) > MOST_TICKS:
        what = (
            f"the periods of the controllers coincide after {ticks} ticks only, and at most {MOST_TICKS} are linearised"
        )
        raise InputError(f"{what}; choose periods with a smaller common multiple", "analyze")
    for name, why in tick_model.untraceable.items():
        raise InputError(f"controller '{name}' has no derivative: {why}", "analyze")


def slopes_of(tick_model: TickModel) -> Slopes:
    """(the derivative of each call by its name, whether all are exact), for many states and parameters of a rig.

    Raises InputError for a call without derivative.
    """
    found: dict[str, Slope] = {}
    exact = True
    for call in (call for task in tick_model.tasks for call in task.calls):
        try:
            found[call.name], own = slope_of(call, tick_model)
        except CompileError as error:
            raise InputError(f"{call.name} has no derivative: {error.what}", "analyze") from None
        exact &= own
    return found, exact


def evaluate(call: MemoryCall, memory: Array) -> None:
    """Make the call on the memory, in Python."""
    with np.errstate(all="ignore"):
        results = call.fn(*(memory[where].reshape(shape).copy() for where, shape in call.inputs))
    for (where, _), value in zip(call.outputs, results if isinstance(results, tuple) else (results,), strict=True):
        memory[where] = np.reshape(np.asarray(value, dtype=float), -1)


def observable(A: Array, C: Array, written: Array) -> Array:
    """Indices of what passes from tick to tick and has an influence on an output (structurally observable)."""
    linked, seen = A != 0.0, np.any(C != 0.0, axis=0) & written
    while True:
        more = seen | (np.any(linked[seen], axis=0) & written)
        if np.array_equal(more, seen):
            return np.flatnonzero(seen)
        seen = more


def parts_of(tick_model: TickModel) -> list[str]:
    """Of each number of the memory what it is a part of."""
    names, plant = [""] * tick_model.layout.size, tick_model.plant
    for path, (where, _) in tick_model.layout.places.items():
        names[where] = [_part(path)] * (where.stop - where.start)
    start = tick_model.layout.place("plant").where.start
    velocities = np.flatnonzero(plant.unprescribed)
    dofs = {"position": plant.state_coordinate_names, "velocity": [plant.model.dof_names[k] for k in velocities]}
    for what, owners in dofs.items():
        for place, owner in zip(plant.layout.index(what), owners, strict=True):
            names[start + place] = f"{what} of {owner}"
    return names


def _part(path: tuple[str, ...]) -> str:
    match path:
        case ("plant", "actuators", joint, *state):
            return f"drive of {joint}: {'.'.join(state)}"
        case ("controllers", name, *_):
            return f"controller {name}"
        case ("sensors", *_):
            return "encoders"
        case _:
            return " ".join(path)


def places_of(call: MemoryCall) -> tuple[Array, Array]:
    """Indices in the memory of the inputs (n,) and the outputs (m,) of a call."""
    inputs, outputs = (
        np.concatenate([np.arange(where.start, where.stop) for where, _ in regions])
        for regions in (call.inputs, call.outputs)
    )
    return inputs, outputs


def slope_of(call: MemoryCall, tick_model: TickModel) -> tuple[Slope, bool]:
    """(its derivative, whether it is exact), see `PlantSteps` of what is not.

    Raises CompileError for a call that has no derivative.
    """
    if call.fn == tick_model.advance:
        return (steps := PlantSteps(tick_model)), steps.exact
    with unquantised():
        shapes = [region.shape for region in call.inputs]
        return Jacobian(lambda z: _flat(call.fn(*cut(z, shapes))), [(_size(call),)], f"slope_{call.name}"), True


def _size(call: MemoryCall) -> int:
    return sum(math.prod(region.shape) for region in call.inputs)


def _flat(results: Numeric) -> Numeric:
    parts = results if isinstance(results, tuple) else (results,)
    return ops.concatenate([ops.array(part).reshape(-1) for part in parts])
