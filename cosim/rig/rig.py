"""The public API of rigs: load, wire and run a rig file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cosim.core.compile import interpreting
from cosim.core.errors import InputError, plural
from cosim.core.trust.data_only import reads_data_only
from cosim.core.units import parse_quantity
from cosim.execution.engine import Engine
from cosim.execution.scheduler import Scheduler
from cosim.output.run_status import RunStatus
from cosim.rig.reading.input_tracking import key_of
from cosim.rig.run.run import Run, StoppedRun
from cosim.rig.run.run_metadata import channels_of
from cosim.rig.run.run_warnings import closes, give, violations
from cosim.rig.run.session import make_engine, make_scheduler, run_session, ticks_of
from cosim.rig.wiring.cached_parts import KNOWN, WARNINGS, CachedParts
from cosim.rig.wiring.wired_rig import WiredRig

if TYPE_CHECKING:
    from cosim.rig.gradient import Gradient, Metrics, Objective, Parameters
    from cosim.rig.parameters import ParameterValue
    from cosim.rig.reading.yaml_source import Override, YamlSource
    from cosim.rig.rollout_batch import RolloutBatch
    from cosim.rig.rollouts import Device, Keep
    from cosim.rig.run.consent import GivenConsent
    from cosim.rig.run.recorded_run import Change
    from cosim.rig.sections.keep import Keep as KeepSignals
    from cosim.rig.sections.rig_spec import RigSpec
    from cosim.simulation.tick.accumulation import UserMetric

NO_PARAMETERS: Mapping[str, ParameterValue] = {}
NO_ARRAYS: Mapping[str, ArrayLike] = {}


class Rig(WiredRig):
    """A checked rig file, wired and ready to run."""

    def _build(self, spec: RigSpec) -> None:
        super()._build(spec)
        if spec.telemetry.publish is not None or spec.telemetry.signals:
            from cosim.rig.run.stream import streamed_columns

            streamed_columns(spec, [name for name, _ in channels_of(self)])

    def engine(self) -> Engine:
        """A new engine at t = 0: the compiled one, which may call Python, where it can be, else the Python engine."""
        return make_engine(self)

    def scheduler(self) -> Scheduler:
        """The scheduler of a run, for stepping through its states by hand."""
        return make_scheduler(self)

    @property
    def parameters(self) -> dict[str, float | list[float]]:
        """The parameters that `set` sets, by name: the numbers of the controllers, in SI, a list where there is one per
        joint."""
        from cosim.rig.parameter_table import table_of

        return table_of(self).values()

    @property
    def numbers(self) -> dict[str, float | list[float]]:
        """The numbers of the mechanism and the drives that `rollouts` can vary as well, by name, in SI."""
        from cosim.rig.parameter_table import table_of

        return {name: number.value(number.values) for name, number in table_of(self).per_run.items()}

    @property
    def warnings(self) -> tuple[list[str], list[str]]:
        """(what is unstable, what does not fit) in the rig with its present parameters."""

        def find() -> tuple[list[str], list[str]]:
            from cosim.rig.inspection import warnings_before_run

            return warnings_before_run(self)

        return self.cached.get(WARNINGS, find)

    def set(self, name: str, value: ParameterValue) -> None:
        """Set a parameter such as `arm.kp` for all further runs, without building anything anew.

        value: a number in SI or text with a unit, one for all joints or one per joint; `arm.kp/elbow` is one joint's.
        Raises InputErrors for a name that does not exist and for a value that the rig file could not have.
        """
        from cosim.rig.parameters import set_values

        set_values(self, {name: value})

    def run(
        self,
        duration: float | str | None = None,
        record: str | Path | None = None,
        progress: Callable[[RunStatus], None] | None = None,
        clear_faults: bool = False,
        parameters: Mapping[str, ParameterValue] = NO_PARAMETERS,
        keep: KeepSignals | None = None,
        wait: bool = False,
        changes: Sequence[Change] = (),
        consent: GivenConsent | None = None,
        allow_turns: bool = False,
    ) -> Run:
        """Run from t = 0 for `duration`, in s or as text such as `2 s` (default: the rig's), both ends included in the
        result.

        record: MCAP file written during the run; progress: called a few times per second;
        clear_faults: clear the faults that real drives report first (look at their causes before);
        parameters: set for this run only, see `set`;
        wait: until a client starts the run, see `telemetry.control`;
        changes: made again in this run, which is as fast as possible, such as `run.changes` of another;
        consent: of a rig with real motors called with its motion plan before they are switched on, and again where a
        joint has moved since, to raise InputError where the motion is not wanted;
        allow_turns: real joints stand where their drives report, also where these may have lost whole turns without
        power, and may rotate by more than a turn to the start of their trajectory;
        keep: `all` signals of all ticks, only the `final` tick, or keys of the section `keep`, such as
        `{"every": 10, "signals": ["*/position"]}` (default: the rig's). The summary covers all ticks in any case.
        Warns (`cosim.errors.RunWarning`) of what makes the results doubtful; `run.warnings` lists it.
        Raises StoppedRun when the guard, a failing controller or Ctrl-C stops the run; its `run` holds everything up to
        then. Raises RunError if the first tick fails.
        """
        given = duration, record, progress, clear_faults, keep, wait, changes, consent, allow_turns
        if parameters or not isinstance(parameters, Mapping):
            from cosim.rig.parameters import set_for_a_run

            with set_for_a_run(self, parameters):
                return self._run(*given, look=False)
        return self._run(*given)

    def _run(
        self,
        duration: float | str | None,
        record: str | Path | None,
        progress: Callable[[RunStatus], None] | None,
        clear_faults: bool,
        keep: KeepSignals | None,
        wait: bool,
        changes: Sequence[Change],
        consent: GivenConsent | None,
        allow_turns: bool,
        look: bool = True,
    ) -> Run:
        """See `run`; look: at what is unstable before the run, which many runs with other parameters would do again and
        again."""
        kept = self.run_spec.keep
        if keep is not None:
            from cosim.rig.sections.keep import keep_of

            kept = keep_of(keep)
        seconds, asked = _seconds(duration), (consent, allow_turns)
        unstable, misfits = self.warnings if look else ([], [])
        of_file = self.run_spec.mechanism.warnings  # which were given when the rig was loaded
        give([*unstable, *(line for line in misfits if line not in of_file)])
        try:
            run = run_session(self, seconds, record, progress, clear_faults, kept, wait, changes, *asked)
        except StoppedRun as stopped:
            stopped.run.unstable, stopped.run.misfits = tuple(unstable), tuple(misfits)
            give(stopped.run.warnings[len(unstable) + len(misfits) :])
            raise
        run.unstable, run.misfits = tuple(unstable), tuple(misfits)
        self._explain(run)
        give(run.warnings[len(unstable) + len(misfits) :])
        return run

    def _explain(self, run: Run) -> None:
        """Add why the energy balance of a finished run does not close, or a constraint stays violated."""
        balance, violated = not closes(run.summary), dict(violations(run, run.summary))
        if not (balance or violated) or run.unstable:
            return
        unstable, _ = self.warnings  # of a run with parameters of its own
        run.unstable = tuple(unstable)
        if not unstable:
            from cosim.rig.run.step_comparison import causes_of_residuals

            run.cause, run.causes_of_violations = causes_of_residuals(self, run, balance, violated)

    def rollouts(
        self,
        parameters: Mapping[str, ArrayLike] = NO_ARRAYS,
        initial: Mapping[str, ArrayLike] = NO_ARRAYS,
        duration: float | str | None = None,
        keep: Keep = "final",
        every: int | None = None,
        signals: Sequence[str] | None = None,
        metrics: Sequence[str | UserMetric] = (),
        threads: int | None = None,
        unknown: Collection[str] = (),
        device: Device = "cpu",
    ) -> RolloutBatch:
        """k runs from t = 0, side by side in SIMD lanes and threads; each equals a single run to the bit.

        parameters: name (see `set`) -> one number or one row per run, (k,) or (k, n), in SI; initial:
        `<joint>/position` or `<joint>/velocity` -> (k,); duration: see `run`; keep: `final` for the last tick only, or
        `all` signals over time; signals: keep these over time; every: keep every n-th tick; metrics: accumulated over
        all ticks, names out of `cosim.METRICS` or functions of (t, signals by name) that are integrated over time;
        threads: one per core by default; unknown: numbers of the plant among the parameters that the models of the
        controllers do not have: these keep the numbers of the rig file; device: `cuda` for the first GPU of NVIDIA, a
        thread per run, where functions such as the exponential round otherwise. That is experimental: no GPU has run it
        so far. A run that is stopped keeps what it had; `faults` has the reason.
        Raises InputErrors for names, shapes and values that do not fit, for a rig whose ticks are not compiled, and
        without a GPU that can run them.
        """
        from cosim.rig.rollouts import run_rollouts

        ticks = ticks_of(self, _seconds(duration))
        return run_rollouts(self, parameters, initial, ticks, keep, every, signals, metrics, threads, unknown, device)

    def gradient(
        self,
        metrics: Metrics,
        parameters: Parameters = (),
        duration: float | str | None = None,
        objective: Objective | None = None,
        threads: int | None = None,
        tape: float = 1e9,
        initial: Parameters = (),
    ) -> Gradient:
        """A figure of merit of a run from t = 0, and its exact derivatives with respect to gains, numbers of the
        plant and initial values: every tick is differentiated backwards, in machine code.

        metrics: names out of `cosim.METRICS`, or functions of (t, signals by name) that are integrated over time;
        parameters: names out of `parameters` and `numbers`, at their values in the rig, or name -> one number or one
        row per run, (k,) or (k, n), in SI, as in `rollouts`; duration: see `run`; objective: of the metrics by name,
        (joints,) each, to one number, with `cosim.plugin.ops` (default: the sum of them all); threads: one per core by
        default; tape: most bytes for what a run leaves for its way back, a run that needs more is computed twice;
        initial: names `<joint>/position` or `<joint>/velocity`, or name -> one number per run, (k,), as in `rollouts`.
        Raises InputErrors for names, shapes and values that do not fit, and for a rig without derivative, with what has
        none. Raises RunError where the run is stopped; of several runs those are NaN.
        """
        from cosim.rig.gradient import find_gradient

        ticks = ticks_of(self, _seconds(duration))
        return find_gradient(self, metrics, parameters, initial, ticks, objective, threads, tape)

    def __repr__(self) -> str:
        names = ", ".join(loop.name for loop in self.tick_model.loops) or "no controller"
        return f"<Rig {self.spec.name}: {len(self.joints)} {plural(len(self.joints), 'dof')}, {names}>"

    def __reduce__(self) -> tuple[Callable[..., Rig], tuple[YamlSource, bool, np.ndarray]]:
        """Pickled as its file, built anew when it is read."""
        return _rebuilt, (self.spec.source, self.interpret, self.tick_model.parameters.copy())

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], folder: str | Path = ".", interpret: bool | None = None, realtime: bool = False
    ) -> Rig:
        """The rig with the sections `data`, as they would stand in a file of this folder.

        See `load_rig` for the other arguments and for what it warns of. Raises InputErrors with all errors, each with
        its key.
        """
        from cosim.rig.reading.schema import show
        from cosim.rig.reading.yaml_source import source_of

        if not isinstance(data, Mapping):
            raise InputError(f"expected a mapping of the sections of a rig, got {show(data)}", "from_dict")
        rig = _tracked(lambda: _read(source_of(data, folder), (), realtime), interpret, cls)
        give(rig.run_spec.mechanism.warnings, 3)
        return rig


def load_rig(
    path: str | Path, overrides: Iterable[Override] = (), interpret: bool | None = None, realtime: bool = False
) -> Rig:
    """The rig of a file, after overrides like `controllers.arm.kp=200`.

    realtime: run in real time, with the settings of `schedule.realtime` or its defaults.
    Raises InputErrors with all errors, each with its line. Warns (`cosim.errors.RunWarning`) of what of a robot file is
    lost and changes the motion.
    """
    rig = _loaded(path, overrides, interpret, realtime)
    give(rig.run_spec.mechanism.warnings, 3)
    return rig


def _loaded(path: str | Path, overrides: Iterable[Override], interpret: bool | None, realtime: bool) -> Rig:
    """See `load_rig`."""
    if not isinstance(path, str | Path):
        from cosim.rig.reading.schema import show

        fix = "use Rig.from_dict for the sections of a rig"
        raise InputError(f"expected the name of a file, got {show(path)}; {fix}", "load_rig")
    texts = [overrides] if isinstance(overrides, str) else list(overrides)

    def read() -> RigSpec:
        from cosim.rig.reading.yaml_source import load_yaml

        return _read(load_yaml(path), texts, realtime)

    if reads_data_only():  # what is kept for other processes was made with code of rigs
        return _tracked(read, interpret)
    if interpreting() if interpret is None else interpret:
        return _tracked(read, True)
    cached = CachedParts.of(key_of(str(path), texts, realtime))
    if KNOWN in cached:
        return Rig.restored(cached, read)
    with cached.tracked():
        return Rig(read(), False, cached)


def _tracked(read: Callable[[], RigSpec], interpret: bool | None, kind: type[Rig] = Rig) -> Rig:
    """A rig that is not kept for other processes, but knows its files."""
    known = CachedParts()
    with known.tracked():
        return kind(read(), interpret, known)


def _read(source: YamlSource, overrides: Sequence[Override], realtime: bool) -> RigSpec:
    from cosim.rig.sections.rig_spec import read_rig

    spec = read_rig(source, overrides)
    if (realtime or spec.drivers) and spec.schedule.pacing is None:
        # catching up would send late commands to real motors
        word = "{overrun: skip}" if spec.drivers else "yes"
        spec = read_rig(source, [*overrides, (f"schedule.realtime={word}", "--realtime")])
    return spec


def _rebuilt(source: YamlSource, interpret: bool, parameters: np.ndarray) -> Rig:
    from cosim.rig.sections.rig_spec import read_rig

    rig = _tracked(lambda: read_rig(source), interpret)
    rig.tick_model.parameters[:] = parameters
    return rig


def _seconds(duration: float | str | None) -> float | None:
    """Raises InputError for what is no time."""
    if duration is None or (isinstance(duration, int | float | np.number) and not isinstance(duration, bool)):
        return duration
    if not isinstance(duration, str):
        from cosim.rig.reading.schema import show

        raise InputError(f"expected s or text such as '2 s', got {show(duration)}", "duration")
    try:
        return parse_quantity(duration, "s")
    except ValueError as error:
        raise InputError(str(error), "duration") from None
