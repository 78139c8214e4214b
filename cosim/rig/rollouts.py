"""Many runs of one rig with other parameters and initial states, side by side in machine code."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.core.compile import ArrayPort, BatchFunction, compile_for_batches
from cosim.core.errors import CompileError, InputError, InputErrors, did_you_mean
from cosim.core.types import Array, Numeric
from cosim.execution.gpu_rollouts import GpuRollouts
from cosim.execution.native_engine import NativeEngine
from cosim.execution.rollouts import Rollouts
from cosim.rig.parameter_arrays import ParameterArrays, read_arrays
from cosim.rig.parametrised_rig import holding_bristles, parametrised
from cosim.rig.rollout_batch import Faults, RolloutBatch
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.plant.plant import Plant
from cosim.simulation.tick.accumulation import Accumulation, UserMetric
from cosim.simulation.tick.metrics import METRICS
from cosim.simulation.tick.tick_model import TickModel

Keep = Literal["final", "all"]
Device = Literal["cpu", "cuda"]
# loop of a model, and what runs it
_ENGINES: dict[Device, tuple[Callable[..., Any], Callable[..., Rollouts | GpuRollouts]]] = {
    "cpu": (TickModel.simd_loop, Rollouts),
    "cuda": (TickModel.gpu_loop, GpuRollouts),
}
# why a run stopped that is near a limit, where the GPU rounds otherwise than the CPU
NOT_REPEATED = "stopped on the GPU; the same run on the CPU is not, so a limit was passed by no more than rounding"
# fraction of the machine's memory that the kept signals may take
MEMORY_SHARE = 0.5


def run_rollouts(
    rig: WiredRig,
    parameters: Mapping[str, Any],
    initial: Mapping[str, Any],
    ticks: int,
    keep: Keep,
    every: int | None,
    signals: Sequence[str] | None,
    metrics: Sequence[str | UserMetric],
    threads: int | None,
    unknown: Collection[str],
    device: Device,
) -> RolloutBatch:
    """See `Rig.rollouts`. ticks: after the first."""
    check_compiled(rig, "rollouts")
    _check_device(device, threads)
    given = read_arrays(rig, parameters)
    model = opened_model(rig, given.numbers, _unknown(unknown, given.numbers))
    starts = read_starts(rig, model, initial)
    k = number_of_runs(given, starts)
    for name, count in (("every", every), ("threads", threads)):
        if count is not None and (not isinstance(count, int) or count < 1):
            raise InputError(f"give a whole number of 1 or more, got {count!r}", name)
    kept = _kept(rig, keep, every, signals)
    step, count = every or 1, ticks + 1
    _check_memory(k, len(kept), -(-count // step))
    accumulation = accumulation_of(model, metrics, ticks) if metrics else None
    first = first_memories(rig, model, given, starts)

    accumulators = np.zeros(0) if accumulation is None else accumulation.initial()
    make_loop, make_engine = _ENGINES[device]
    engine = make_engine(_loop(make_loop, model, accumulation, kept), first, accumulators, count, step)
    found = engine.run(k, threads)
    return RolloutBatch(
        rig=rig.spec.name,
        joints=rig.joints,
        parameters={name: np.asarray(value, dtype=float) for name, value in parameters.items()},
        metrics={} if accumulation is None else accumulation.results(found.accumulators, found.ticks),
        t=np.arange(found.samples.shape[1]) * (step * model.step_ns) * 1e-9,
        samples={name: found.samples[:, :, j] for j, name in enumerate(kept)},
        final={name: found.final[:, j] for j, name in enumerate(model.signals.names)},
        ticks=found.ticks - 1,
        stopped=found.faulty,
        faults=Faults(found.faulty, lambda number: reason_of_stop(model, first, number, count) or NOT_REPEATED),
    )


def first_memories(
    rig: WiredRig, model: TickModel, given: ParameterArrays, starts: Starts | None = None
) -> Callable[[slice], Array]:
    """The memories (n, size) at t = 0 of a range of runs."""
    gains, numbers = (model.layout.place(name).where for name in ("parameters", "numbers"))
    base = model.memory()
    paths = ("plant",), ("plant", "bristles"), ("plant", "energy", "contacts")
    plant_place, bristle_place, stored_place = (model.layout.place(*path).where for path in paths)
    bristles = holding_bristles(rig, model, given.numbers) if given.numbers and rig.plant.bristles else None
    stored = None if starts is None or not rig.plant.contacts else _stored_in_contacts(rig.plant)

    def first(chunk: slice) -> Array:
        n = chunk.stop - chunk.start
        memory = np.repeat(base[None], n, axis=0)
        if starts is not None:
            memory = np.array([starts(i) for i in range(len(starts))[chunk]])
            if stored is not None:
                memory[:, stored_place] = stored(memory[:, plant_place])
        memory[:, gains] = given.gains[chunk if given.k else slice(1)]
        memory[:, numbers] = given.values[chunk if given.k else slice(1)]
        if bristles is not None:  # that hold with these numbers
            memory[:, bristle_place] = bristles(memory[:, numbers], memory[:, plant_place])
        return memory

    return first


def _stored_in_contacts(plant: Plant) -> Callable[[Array], Array] | None:
    """(n, m) energies in the springs of contacts [J] in states (n, size) at t = 0; None without springs."""
    if all(contact.law.stiffness is None for contact in plant.contacts.contacts.members):
        return None

    def energies(x: Numeric) -> Numeric:
        state = plant.layout.unpack(x)
        return plant.contacts.stored_energy(plant.model.equations, 0.0, plant.motion(0.0, state)[0], state)

    batch = compile_for_batches(energies, [ArrayPort("x", (plant.layout.size,))], "stored_in_contacts", interpret=False)
    assert isinstance(batch, BatchFunction)

    def stored(states: Array) -> Array:
        found = np.asarray(batch(states)).reshape(len(states), -1).copy()
        for k in np.flatnonzero(found.any(axis=1)):  # to the bit as in a run alone, whose start is computed in Python
            found[k] = energies(states[k])
        return found

    return stored


def reason_of_stop(model: TickModel, first: Callable[[slice], Array], number: int, count: int) -> str:
    """Why a run of `count` ticks was stopped, found by the same run alone."""
    single = NativeEngine(model)
    single.memory[:] = first(slice(number, number + 1))[0]
    return single.run(count)[1]


def check_compiled(rig: WiredRig, what: str) -> None:
    """Raises InputError for a rig whose ticks are not machine code; what: needs it."""
    if rig.native:
        return
    why, fix = "its ticks are interpreted", "load it without 'interpret'"
    if rig.watched:
        why, fix = "it has real motors or an emergency stop", "use a rig without 'drivers' and 'guard.estop'"
    elif untraceable := rig.tick_model.untraceable:
        name, place = next(iter(untraceable.items()))
        why, fix = f"controller '{name}' runs in Python ({place})", "change that line, or call Rig.run in a loop"
    raise InputError(f"{what} need compiled ticks, and {why}; {fix}", str(rig.spec.path))


def _unknown(names: Collection[str], numbers: tuple[str, ...]) -> frozenset[str]:
    """Raises InputErrors for a name that is not among the given numbers."""
    errors = [
        InputError(f"'{name}' is no number of the plant that is given{did_you_mean(name, numbers)}", "unknown")
        for name in names
        if name not in numbers
    ]
    if errors:
        raise InputErrors(errors)
    return frozenset(names)


def opened_model(rig: WiredRig, numbers: tuple[str, ...], unknown: frozenset[str] = frozenset()) -> TickModel:
    """The ticks of the rig with these numbers of the plant as inputs, traced once for the same ones; unknown: see
    `Rig.rollouts`."""
    if not numbers:
        return rig.tick_model
    if rig.parametrised is None or rig.parametrised[0] != (numbers, unknown):
        rig.parametrised = (numbers, unknown), parametrised(rig, numbers, unknown)
    return rig.parametrised[1]


def number_of_runs(given: ParameterArrays, starts: Starts | None) -> int:
    """Raises InputError where parameters and initial states are of unlike length."""
    if given.k is not None and starts is not None and given.k != len(starts):
        what = f"there are {given.k} runs with parameters and {len(starts)} initial states"
        raise InputError(f"{what}; give as many of both", "initial")
    return given.k or (1 if starts is None else len(starts))


def _kept(rig: WiredRig, keep: Keep, every: int | None, signals: Sequence[str] | None) -> tuple[str, ...]:
    """The signals that are kept over time. Raises InputErrors for names that do not exist."""
    known = rig.tick_model.signals.names
    if keep not in (options := get_args(Keep)):
        raise InputError(f"expected one of {', '.join(options)}; got {keep!r}", "keep")
    if isinstance(signals, str):
        raise InputError(f"give a list of names, such as [{signals!r}]", "signals")
    unknown = [name for name in signals or () if name not in known]
    if unknown:
        raise InputErrors(
            [InputError(f"there is no signal '{name}'{did_you_mean(name, known)}", "signals") for name in unknown]
        )
    if signals is not None:
        return tuple(signals)
    return known if keep == "all" or every is not None else ()


def _check_memory(k: int, signals: int, places: int) -> None:
    """Raises InputError for samples that do not fit the memory of the machine."""
    needed = 8 * k * signals * places
    available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > MEMORY_SHARE * available:
        what = f"the signals of {k} runs need {needed / 1e9:,.1f} GB, this machine has {available / 1e9:,.1f} GB"
        raise InputError(f"{what}; keep fewer with signals=[…], every=n or metrics=[…]", "keep")


def accumulation_of(model: TickModel, metrics: Sequence[str | UserMetric], ticks: int) -> Accumulation:
    """Of runs of the model. Raises InputErrors for metrics that do not exist."""
    errors = list[InputError]()
    names, functions = list[str](), dict[str, UserMetric]()
    for metric in [metrics] if isinstance(metrics, str) or callable(metrics) else metrics:
        if callable(metric):
            name = getattr(metric, "__name__", repr(metric))
            if name in functions:
                errors.append(InputError(f"two functions are called '{name}'; give them names of their own", "metrics"))
            functions[name] = metric
        elif metric in METRICS:
            names.append(metric)
        else:
            errors.append(InputError(f"there is no metric {metric!r}{did_you_mean(str(metric), METRICS)}", "metrics"))
    if errors:
        raise InputErrors(errors)
    target = np.zeros(model.nv)
    start = BumplessStart.of(model.signals.first_start, model.nv)
    for loop in model.loops:
        if loop.needs_reference("position"):
            target[loop.index] = start.at(loop.index).reference(loop.trajectory, ticks * model.step)["position"]
    return Accumulation(model.signals, tuple(names), functions, model.limits.effort, target, model.step)


def _check_device(device: str, threads: int | None) -> None:
    """Raises InputError for a device that does not exist, and for threads of a GPU."""
    if device not in _ENGINES:
        raise InputError(f"expected one of {', '.join(_ENGINES)}; got {device!r}", "device")
    if device == "cuda" and threads is not None:
        raise InputError("a GPU has a thread per run; leave it out", "threads")


def _loop(make: Callable[..., Any], model: TickModel, accumulation: Accumulation | None, kept: tuple[str, ...]) -> Any:
    """Raises InputError for a metric that cannot be compiled."""
    try:
        return make(model, accumulation, kept)
    except CompileError as error:
        raise InputError(f"{error.place}: {error.what}" if error.place else error.what, "metrics") from None


def read_starts(rig: WiredRig, model: TickModel, initial: Mapping[str, Any]) -> Starts | None:
    """The memories at t = 0 of runs that start elsewhere than the rig."""
    errors, values = list[InputError](), dict[str, Array]()
    known = {f"{name}/{what}": None for name in rig.joints for what in ("position", "velocity")}
    for name, value in initial.items():
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            array = np.zeros(())
        joint, _, quantity = name.rpartition("/")
        what = ""
        if name not in known:
            what = f"there is no such initial value{did_you_mean(name, list(known))}"
        elif joint in rig.plant.prescribed_dofs:
            what = f"joint '{joint}' is prescribed and starts on its trajectory; leave it out"
        elif quantity == "position" and joint not in rig.plant.full_model.coordinate_names:
            what = f"the orientation of '{rig.spec.owners[joint]}' is a quaternion; give its velocities only"
        elif array.ndim != 1 or not array.size or not np.isfinite(array).all():
            what = f"give an array (k,) of finite numbers in SI for k runs, got {_described(value)}"
        if what:
            errors.append(InputError(what, f"initial '{name}'"))
        values[name] = array
    if len({len(array) for array in values.values() if array.ndim}) > 1 and not errors:
        counts = " and ".join(f"{len(array)} for '{name}'" for name, array in values.items())
        errors.append(InputError(f"give as many values for each, got {counts}", "initial"))
    if errors:
        raise InputErrors(errors)
    return Starts(model, rig.plant, values) if values else None


def _described(value: object) -> str:
    shape = np.shape(value) if isinstance(value, np.ndarray | list | tuple) else ()
    return f"an array of shape {shape}" if shape else repr(value)


@dataclass
class Starts:
    """The memory at t = 0 of each run. plant: with the numbers of the rig; values: positions and velocities by signal,
    (k,)."""

    model: TickModel
    plant: Plant
    values: Mapping[str, Array]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def __call__(self, k: int) -> Array:
        """(size,) Raises InputError for a start at which loops cannot be closed."""
        plant, model = self.plant, self.plant.full_model
        q, v = np.array(plant.position, dtype=float), np.array(plant.velocity, dtype=float)
        kept_q, kept_v = (kept.copy() for kept in plant.kept)
        for name, values in self.values.items():
            joint, _, what = name.rpartition("/")
            dof = model.dof_index(joint)
            if what == "position":
                q[model.coordinate_names.index(joint)], kept_q[dof] = values[k], True
            else:
                v[dof], kept_v[dof] = values[k], True
        try:
            return self.model.memory_from(plant.starting_at(q, v, (kept_q, kept_v)))
        except InputError as error:
            raise InputError(f"{error.what} (run {k})", "initial") from None
