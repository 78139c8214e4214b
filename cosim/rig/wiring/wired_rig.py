"""A rig whose parts are built and connected, at the first use of one of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cosim.core.compile import ArrayPort, BatchFunction, Interpreted, compile_for_batches, interpreting
from cosim.core.errors import InputError
from cosim.execution.timing.deadlines import TaskTime
from cosim.rig.wiring.cached_parts import KNOWN, CachedParts, known_parts, lazy_parts

if TYPE_CHECKING:
    from cosim.control.guard import Guard
    from cosim.core.driver_contract import DriverContext
    from cosim.core.errors import SourceLocation
    from cosim.core.types import Limits
    from cosim.rig.sections.rig_spec import RigSpec
    from cosim.simulation.plant.plant import Plant
    from cosim.simulation.tick.tick_model import TickModel


def require_joints(joints: Collection[str], path: Path, command: str) -> None:
    """Raises InputError for a rig of parts only. command: that is for joints, such as `cosim tune gains`."""
    if not joints:
        what = f"{command} is for joints, and this rig has no mechanism, only parts"
        raise InputError(f"{what}; use cosim run, plot or compare", str(path))


class WiredRig:
    """A checked rig file and everything built from it; nothing is opened and nothing runs.

    spec: the file; joints: names of all dofs; plant; limits, guard: (nv,); tick_model: one control cycle; contexts:
    driver -> its DriverContext; bus_loads: driver -> fraction of its bus that is used, at worst.
    """

    spec: RigSpec
    joints: tuple[str, ...]
    plant: Plant
    guard: Guard
    limits: Limits
    tick_model: TickModel
    contexts: dict[str, DriverContext]
    bus_loads: dict[str, float]
    # while it is not built
    _read: Callable[[], RigSpec] | None = None
    _lazy_parts: tuple[RigSpec, TickModel]
    # the ticks with numbers of the plant as inputs, and the names of these and of those unknown to the controllers
    parametrised: tuple[tuple[tuple[str, ...], frozenset[str]], TickModel] | None = None
    # the loops of the last gradient, see `rig.gradient`
    differentiated: Any = None
    parameter_table: Any = None  # see `rig.parameter_table`

    def __init__(self, spec: RigSpec, interpret: bool | None = None, cached: CachedParts | None = None) -> None:
        """interpret: run the Python functions instead of compiled code (default: by the environment variable); cached:
        where parts are kept for other processes.

        Raises InputErrors for parts that do not fit together.
        """
        self.interpret = interpreting() if interpret is None else interpret
        self.cached = CachedParts() if cached is None else cached
        self._build(spec)

    @classmethod
    def restored(cls, cached: CachedParts, read: Callable[[], RigSpec]) -> Self:
        """The compiled rig of which these parts are known; it is built from the spec when others are needed."""
        rig, known = cls.__new__(cls), cached.get(KNOWN, dict)
        rig.interpret, rig.cached, rig.joints, rig._read = False, cached, known["joints"], read
        rig._lazy_parts = lazy_parts(known, rig._complete)
        return rig

    def _complete(self) -> WiredRig:
        """This rig after it was built. Raises InputError if its files have changed since its parts were cached."""
        if (read := self._read) is not None:
            if not self.cached.unchanged:
                raise InputError("a file of the rig has changed since it was loaded; load it again", "rig")
            with self.cached.tracked():
                self._build(read())
            self._read = None
        return self

    def __getattr__(self, name: str) -> Any:
        """A part of a rig that is not built yet."""
        if name in WiredRig.__annotations__ and not self.built:
            return getattr(self._complete(), name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def built(self) -> bool:
        """Whether it has all its parts, which may have changed since."""
        return self._read is None

    @property
    def run_spec(self) -> RigSpec:
        """`spec` as a run needs it: of a rig that is not built, a lazy one."""
        return self.spec if self.built else self._lazy_parts[0]

    @property
    def run_model(self) -> TickModel:
        """`tick_model` as a run needs it: of a rig that is not built, a lazy one."""
        return self.tick_model if self.built else self._lazy_parts[1]

    def _build(self, spec: RigSpec) -> None:
        from cosim.rig.wiring.rig_parts import build_parts

        parts = build_parts(spec, not self.interpret)
        self.joints = tuple(spec.joints)
        self.__dict__.update(parts._asdict())

    def with_ticks(self, model: TickModel) -> Self:
        """The same rig with other ticks in the place of its own."""
        rig = self._complete()
        found = type(self).__new__(type(self))
        of_ticks = {"parametrised": None, "differentiated": None, "parameter_table": None}
        found.__dict__.update(rig.__dict__ | {"tick_model": model} | of_ticks)
        return found

    def require_joints(self, command: str) -> None:
        """Raises InputError for a rig of parts only. command: that is for joints, such as `cosim tune gains`."""
        require_joints(self.joints, self.run_spec.path, command)

    def save_parts(self) -> None:
        """Save what is known of the rig for other processes, if its ticks are compiled."""
        if self.native:
            self.cached.get(KNOWN, lambda: known_parts(self.spec, self.tick_model))
            self.cached.save()

    @property
    def hardware(self) -> bool:
        """Whether it has real motors."""
        return bool(self.run_spec.drivers)

    @property
    def watched(self) -> bool:
        """Whether every tick reads inputs of the hardware: real motors or an emergency stop."""
        return self.hardware or self.run_spec.guard.estop is not None

    @property
    def looped(self) -> bool:
        """Whether the loop is compiled, without hardware; controllers may stay in Python, unless a watchdog is to stop
        them."""
        monitored = self.run_spec.guard.watchdog is not None and self.run_model.untraceable
        return not (self.interpret or self.watched or monitored or self.run_model.coupled_in_python)

    @property
    def why_python_loop(self) -> str:
        """Why the loop is in Python; empty if it is compiled, with what it calls in Python, see `called`."""
        model = self.run_model
        if self.looped:
            return ""
        if self.interpret:
            return "as requested"
        if model.coupled_in_python and model.coupling is not None:
            return f"the part '{next(iter(model.coupling.in_python))}' is in Python"
        if self.hardware and self.run_spec.schedule.pacing is None:
            return "real motors as fast as possible"
        return ""

    @property
    def called(self) -> dict[str, str]:
        """Real driver -> why a compiled loop calls it in Python; the cycles of the others are machine code."""
        if not self.hardware:
            return {}
        from cosim.rig.wiring.drivers import called_drivers

        return called_drivers(self.run_spec.drivers, self.contexts, self.run_spec.recording.bus)

    @property
    def native(self) -> bool:
        """Whether a whole tick is compiled."""
        return self.looped and not self.run_model.untraceable

    @property
    def tasks(self) -> tuple[TaskTime, ...]:
        """The tasks of a tick in running order, with their deadlines."""
        return self.cached.get("tasks", self._tasks)

    def place(self, path: tuple[str | int, ...]) -> SourceLocation | None:
        """Where a key of the rig is."""
        return self.spec.source.place(path)

    def _tasks(self) -> tuple[TaskTime, ...]:
        schedule = self.spec.schedule
        period = round(schedule.step_ns / schedule.rate)
        return tuple(
            TaskTime(
                task.name,
                task.ticks,
                task.phase,
                (task.loop.deadline_ns if task.loop else schedule.deadlines.get(task.name)) or period,
                self.hardware and task.name in ("read", "write"),
            )
            for task in self.tick_model.tasks
        )

    @property
    def observe(self) -> BatchFunction | Interpreted:
        """(start, row) -> all signals, for batches of rows; start: the flat BumplessStart of their run."""
        return self.cached.get("observe", self._observe)

    def _observe(self) -> BatchFunction | Interpreted:
        start = self.tick_model.layout.place("bumpless_start").shape
        ports = [ArrayPort("start", start), ArrayPort("row", (self.tick_model.row.size,))]
        outputs = [ArrayPort("signals", (len(self.tick_model.signals.names),))]
        return compile_for_batches(self.tick_model.signals.observe, ports, "observe", outputs, self.interpret)
