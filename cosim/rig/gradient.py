"""The exact gradient of a figure of merit of runs with respect to gains, numbers of the plant and initial values, and
what has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cosim.core import ops
from cosim.core.compile import Routine
from cosim.core.compile.jacobian import Jacobian
from cosim.core.compile.jit import vector_lanes
from cosim.core.errors import CompileError, InputError, InputErrors, RunError, SourceLocation, did_you_mean, plural
from cosim.core.types import Array, Numeric
from cosim.execution.gradients import GradientArrays, Gradients
from cosim.rig.gradient_starts import present_starts, start_slopes
from cosim.rig.gradient_touches import warnings_of_touches
from cosim.rig.parameter_arrays import ParameterArrays, read_arrays
from cosim.rig.parameter_table import table_of
from cosim.rig.parametrised_rig import bristles_of
from cosim.rig.rollout_batch import Faults
from cosim.rig.rollouts import (
    accumulation_of,
    check_compiled,
    first_memories,
    number_of_runs,
    opened_model,
    read_starts,
    reason_of_stop,
)
from cosim.rig.run.run_warnings import give
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.loop.reverse_loop import ReverseLoop, ReverseProgram
from cosim.simulation.tick.accumulation import Accumulation, UserMetric
from cosim.simulation.tick.metrics import METRICS
from cosim.simulation.tick.reverse_program import reverse_program
from cosim.simulation.tick.tick_model import TickModel

Metrics = str | UserMetric | Sequence[str | UserMetric]
Parameters = str | Sequence[str] | Mapping[str, ArrayLike]
Objective = Callable[[Mapping[str, Numeric]], Numeric]  # metrics by name -> ()

Obstacle = tuple[SourceLocation | str, str, str]  # (place, what has, fix)


@dataclass(eq=False, repr=False)
class Gradient(Mapping[str, Any]):
    """`gradient["arm.kp"]`: the derivatives of `value` with respect to a parameter, in its shape, () or (n,), or to an
    initial value.

    metrics: name -> (joints,), or as its function returns it; parameters: their values, and the initial ones; units:
    of the parameters, SI.
    Of k runs all arrays have a leading dimension k; `stopped` (k,) are NaN, and `faults` has the reasons.
    """

    rig: str
    joints: tuple[str, ...]
    value: Any
    metrics: Mapping[str, Array]
    parameters: Mapping[str, Any]
    derivatives: Mapping[str, Any]
    units: Mapping[str, str]
    stopped: Any
    faults: Sequence[str]

    def __getitem__(self, name: str) -> Any:
        """Raises KeyError with what exists."""
        if name not in self.derivatives:
            raise KeyError(f"no derivative with respect to '{name}'{did_you_mean(name, list(self.derivatives))}")
        return self.derivatives[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.derivatives)

    def __len__(self) -> int:
        return len(self.derivatives)

    @property
    def vector(self) -> Array:
        """All derivatives side by side, (n,) or (k, n)."""
        lead = np.shape(self.value)
        return np.concatenate([np.reshape(found, (*lead, -1)) for found in self.derivatives.values()], axis=-1)

    def __repr__(self) -> str:
        runs, n = f"{len(self.value)} runs, " if np.ndim(self.value) else "", self.vector.shape[-1]
        return f"<Gradient {self.rig}: {runs}{', '.join(self.metrics)} by {n} {plural(n, 'number')}>"


def find_gradient(
    rig: WiredRig,
    metrics: Metrics,
    parameters: Parameters,
    initial: Parameters,
    ticks: int,
    objective: Objective | None,
    threads: int | None,
    tape: float,
) -> Gradient:
    """See `Rig.gradient`. ticks: after the first."""
    wanted = [metrics] if isinstance(metrics, str) or callable(metrics) else list(metrics)
    check_differentiable(rig, wanted)
    _check_counts(threads, tape)
    arrays = parameters if isinstance(parameters, Mapping) else _present(rig, _names(parameters))
    begins = initial if isinstance(initial, Mapping) else present_starts(rig, _names(initial))
    single = not any(isinstance(each, Mapping) for each in (parameters, initial))
    if not (wanted and (arrays or begins)):
        missing = "parameters" if wanted else "metrics"
        raise InputError(f"give at least one of the {missing}", missing)
    if not single:  # what is at its values in the rig is the same in all runs
        rows = [value for each in (parameters, initial) if isinstance(each, Mapping) for value in each.values()]
        k = len(np.atleast_1d(rows[0])) if rows else 1
        arrays = arrays if isinstance(parameters, Mapping) else _repeated(arrays, k)
        begins = begins if isinstance(initial, Mapping) else _repeated(begins, k)
    given = read_arrays(rig, arrays)
    model, count = opened_model(rig, given.numbers), ticks + 1
    starts = read_starts(rig, model, begins)
    k = number_of_runs(given, starts)
    first = first_memories(rig, model, given, starts)
    slopes = {} if starts is None else start_slopes(rig, model, given, starts)
    goal = _Goal(accumulation_of(model, wanted, ticks), objective, count)
    places = _places(rig, model, given, list(arrays))
    varied = _varied(model, places, slopes)
    loop = _loop(rig, model, goal.accumulation, varied, 1 if k == 1 else vector_lanes())
    found = Gradients(loop, first, goal.accumulation.initial(), count, goal.slope, tape).run(k, threads)
    faults = Faults(found.faulty, lambda number: reason_of_stop(model, first, number, count))
    if single and found.faulty[0]:
        raise RunError(f"the run is stopped: {faults[0]}", "gradient")
    of_starts = {name: np.sum(found.derivatives * slope, axis=1) for name, slope in slopes.items()}
    _pass_start(rig, model, given, first, found)
    values, of_metrics = goal.values(found.accumulators)
    values[found.faulty] = found.derivatives[found.faulty] = np.nan
    for slope in of_starts.values():
        slope[found.faulty] = np.nan
    shapes = _shapes(rig, list(places))

    def shaped(rows: Array, of_start: Mapping[str, Array]) -> dict[str, Any]:
        of = {name: rows[:, where].reshape(k, *shapes[name]) for name, where in places.items()} | dict(of_start)
        return {name: array[0] if single else array for name, array in of.items()}

    made = Gradient(
        rig=rig.spec.name,
        joints=rig.joints,
        value=float(values[0]) if single else values,
        metrics={name: array[0] if single else array for name, array in of_metrics.items()},
        parameters=shaped(first(slice(0, k)), {} if starts is None else starts.values),
        derivatives=shaped(found.derivatives, of_starts),
        units=_units(rig, list(places)) | {name: model.signals.declared[name].unit for name in slopes},
        stopped=bool(found.faulty[0]) if single else found.faulty,
        faults=faults,
    )
    _check_finite(made, ~found.faulty)
    give(warnings_of_touches(rig, arrays, begins, ticks, threads), 4)
    return made


def _check_counts(threads: int | None, tape: float) -> None:
    """Raises InputError for numbers that make no sense."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise InputError(f"give a whole number of 1 or more, got {threads!r}", "threads")
    if not (isinstance(tape, int | float) and tape > 0):
        raise InputError(f"give a number of bytes above 0, got {tape!r}", "tape")


def _names(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _repeated(values: Mapping[str, ArrayLike], k: int) -> dict[str, Array]:
    return {name: np.repeat(np.asarray(value), k, axis=0) for name, value in values.items()}


def _present(rig: WiredRig, names: Sequence[str]) -> dict[str, Array]:
    """The values of these parameters in the rig, one row each. Raises InputErrors for names that do not exist."""
    table, errors = table_of(rig), list[InputError]()
    found = table.find_all(names, errors)
    if errors:
        raise InputErrors(errors)
    numbers = {name: table.numbers(parameter.name)[_elements(element)] for name, (parameter, element) in found.items()}
    return {name: values[None] for name, values in numbers.items()}


def _elements(element: int | None) -> slice:
    """Of a parameter."""
    return slice(None) if element is None else slice(element, element + 1)


def _shapes(rig: WiredRig, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    found = {name: table_of(rig).find(name) for name in names}
    return {
        name: () if parameter.count is None or element is not None else (parameter.count,)
        for name, (parameter, element) in found.items()
    }


def _units(rig: WiredRig, names: Sequence[str]) -> dict[str, str]:
    found = {name: table_of(rig).find(name) for name in names}
    return {
        name: parameter.unit if element is None else parameter.units[element]
        for name, (parameter, element) in found.items()
    }


def _places(rig: WiredRig, model: TickModel, given: ParameterArrays, names: Sequence[str]) -> dict[str, slice]:
    """Where the memory holds each parameter."""
    table, places = table_of(rig), dict[str, slice]()
    gains, numbers = (model.layout.place(name).where.start for name in ("parameters", "numbers"))
    sizes = [table.per_run[name].size for name in given.numbers]
    begins = dict(zip(given.numbers, np.cumsum([numbers, *sizes]).tolist(), strict=False))
    for name in names:
        parameter, element = table.find(name)
        begin = begins[parameter.name] if parameter.name in begins else gains + table.live[parameter.name].where.start
        first, last, _ = _elements(element).indices(parameter.size)
        places[name] = slice(begin + first, begin + last)
    return places


def _varied(model: TickModel, places: Mapping[str, slice], slopes: Mapping[str, Array]) -> Array:
    """bool (size,): the numbers of the memory at t = 0 whose derivatives are wanted."""
    varied = np.zeros(model.layout.size, dtype=bool)
    for where in places.values():
        varied[where] = True
    for slope in slopes.values():
        varied |= (slope != 0.0).any(axis=0)
    varied[model.layout.place("plant", "bristles").where] |= model.layout.place("numbers").where != slice(0, 0)
    return varied


def _loop(rig: WiredRig, model: TickModel, accumulation: Accumulation, varied: Array, width: int) -> ReverseLoop:
    """The compiled ticks, derived once for the same metrics and parameters. Raises InputError for what has no
    derivative."""
    key = model, accumulation.key, varied.tobytes()
    if rig.differentiated is None or rig.differentiated.key[1:] != key[1:] or rig.differentiated.key[0] is not model:
        try:
            rig.differentiated = DifferentiatedTicks(key, reverse_program(model, accumulation, varied), {})
        except CompileError as error:
            raise InputError(error.what, str(error.place or "gradient")) from None
    return rig.differentiated.loop(width)


@dataclass
class DifferentiatedTicks:
    """The ticks with adjoints for one choice of metrics and parameters (`key`), compiled per number of
    SIMD lanes."""

    key: tuple[Any, ...]
    program: ReverseProgram
    loops: dict[int, ReverseLoop]

    def loop(self, width: int) -> ReverseLoop:
        if width not in self.loops:
            self.loops[width] = ReverseLoop(self.program, width)
        return self.loops[width]


@dataclass
class _Goal:
    """The objective of runs of `count` ticks: a function of their accumulators."""

    accumulation: Accumulation
    objective: Objective | None
    count: int

    def __post_init__(self) -> None:
        """Raises InputError for an objective that cannot be traced."""
        shapes = [(self.accumulation.layout.size,)]
        try:
            Routine(self._value, shapes, "objective")  # for its errors
            self._jacobian = Jacobian(lambda a: ops.array([self._value(a)]), shapes, "objective")
        except CompileError as error:
            raise InputError(error.what, str(error.place or "objective")) from None

    def slope(self, accumulators: Array) -> Array:
        """∂objective/∂accumulators (nm,)."""
        return self._jacobian(accumulators)[0]

    def values(self, accumulators: Array) -> tuple[Array, dict[str, Array]]:
        """(objective (k,), metrics), of accumulators (k, nm)."""
        ticks = np.full(len(accumulators), self.count)
        return np.array([self._value(row) for row in accumulators]), self.accumulation.results(accumulators, ticks)

    def _value(self, accumulators: Numeric) -> Numeric:
        found = self.accumulation.results(accumulators.reshape(1, -1), np.array([self.count]))
        metrics = {name: ops.array(value)[0] for name, value in found.items()}
        if self.objective is not None:
            return self.objective(metrics)
        totals = []
        for name, value in metrics.items():
            joints = np.flatnonzero(self.accumulation.has(name)) if name in self.accumulation.metrics else ...
            totals.append(ops.sum(ops.array(value[joints]).reshape(-1)))
        return ops.sum(totals)


def _pass_start(
    rig: WiredRig, model: TickModel, given: ParameterArrays, first: Callable[[slice], Array], found: GradientArrays
) -> None:
    """The numbers decide where bristles start: add what they do in this way to their derivatives."""
    if not (given.numbers and rig.plant.bristles):
        return
    plant, numbers = (model.layout.place(name).where for name in ("plant", "numbers"))
    bristles = model.layout.place("plant", "bristles").where
    shapes = [(numbers.stop - numbers.start,), (plant.stop - plant.start,)]
    jacobian = Jacobian(bristles_of(rig, given.numbers), shapes, "bristles")
    for k, row in enumerate(found.derivatives):
        memory = first(slice(k, k + 1))[0]
        row[numbers] += row[bristles] @ jacobian(memory[numbers], memory[plant])


def _check_finite(made: Gradient, sound: Array) -> None:
    """Raises RunError where a run that was not stopped has a value or a derivative that is not finite."""
    values, vectors = np.atleast_1d(made.value), np.atleast_2d(made.vector)
    for k in np.flatnonzero(sound):
        where = "" if len(sound) == 1 else f" of run {k}"
        if not np.isfinite(values[k]):
            odd = [name for name, value in made.metrics.items() if not np.isfinite(value).all()]
            raise RunError(f"the objective{where} is {values[k]}, see the metrics {', '.join(odd)}", "gradient")
        if not np.isfinite(vectors[k]).all():
            raise RunError(
                f"the derivatives{where} are not finite: a root or an angle is taken where it has no slope; start the"
                " run elsewhere, or choose another metric",
                "gradient",
            )


def check_differentiable(rig: WiredRig, metrics: Sequence[str | UserMetric]) -> None:
    """Raises InputErrors with everything that has no derivative, each with its place and the fix."""
    check_compiled(rig, "gradients")
    errors = [InputError(f"{what} no derivative; {fix}", place) for place, what, fix in _obstacles(rig)]
    errors += [
        InputError(f"'{name}' counts ticks and has no derivative; use 'iae' or 'error_rms'", "metrics")
        for name in metrics
        if isinstance(name, str) and name in METRICS and METRICS[name].counts_ticks
    ]
    if errors:
        raise InputErrors(errors)


def _obstacles(rig: WiredRig) -> Iterator[Obstacle]:
    """All parts that have no derivative."""
    for find in _OBSTACLE_KINDS:
        yield from find(rig)


def _encoders(rig: WiredRig) -> Iterator[Obstacle]:
    for name, joint in rig.spec.joints.items():
        if joint.encoder is not None and joint.encoder.cpr is not None:
            keys = "joints", name, "encoder", "cpr"
            yield _at(rig, keys), f"the whole counts of the encoder of '{name}' have", "leave out 'cpr'"


def _events(rig: WiredRig) -> Iterator[Obstacle]:
    modes = rig.plant.modes
    for event in modes.events:
        yield _at(rig, ("events",)), f"the instant of the event '{event.name}' has", "leave the event out"
    for stop in modes.stops:
        name = rig.joints[stop.dof]
        yield _at(rig, ("joints", name, "stops")), f"an impact of '{name}' on its stop has", "leave out 'stops'"
    for contact in rig.plant.mechanism.contacts:
        if contact.exact:
            yield contact.place, f"the instants of the exact contact '{contact.name}' have", "take 'exact' out"


def _steps(rig: WiredRig) -> Iterator[Obstacle]:
    schedule = rig.spec.schedule
    if schedule.adaptive:
        yield _at(rig, ("schedule", "substeps")), "steps of chosen length have", "set 'substeps' to a number"


def _parts(rig: WiredRig) -> Iterator[Obstacle]:
    for part in rig.spec.parts:
        yield _at(rig, part.key), f"the part '{part.name}', which is integrated apart, has", "vary it by rollouts"


def _at(rig: WiredRig, keys: tuple[str | int, ...]) -> SourceLocation | str:
    return rig.place(keys) or ".".join(map(str, keys))


_OBSTACLE_KINDS: tuple[Callable[[WiredRig], Iterator[Obstacle]], ...] = (_encoders, _events, _steps, _parts)
