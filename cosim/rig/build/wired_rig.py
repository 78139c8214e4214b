"""A rig whose parts are built and connected: plant, guard, control loops and the model of its ticks."""

from __future__ import annotations

from functools import cached_property

from cosim.compile import ArrayPort, BatchFunction, Interpreted, compile_for_batches, interpreting
from cosim.errors import InputError, InputErrors
from cosim.rig.build.control_loops import build_loops, check_reference_limits, followed_positions
from cosim.rig.build.driver_context import (
    drive_controlled,
    driver_contexts,
    load_motors,
    observer_bandwidths,
    real_joints,
)
from cosim.rig.build.drivers import bus_loads
from cosim.rig.build.guard import guard_of, with_encoders, with_real_defaults
from cosim.rig.build.initial_state import is_spherical_dof
from cosim.rig.build.plant import build_encoders, build_plant
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.rig_spec import RigSpec
from cosim.tick.tick_model import TickModel
from cosim.timing.deadlines import TaskTime


class WiredRig:
    """A checked rig file and everything built from it; nothing is opened and nothing runs.

    spec: the file; joints: names of all dofs; plant; limits, guard: (nv,); tick_model: one control cycle; contexts:
    driver -> its DriverContext; bus_loads: driver -> fraction of its bus that is used, at worst.
    """

    def __init__(self, spec: RigSpec, interpret: bool | None = None) -> None:
        """interpret: run the Python functions instead of compiled code (default: by the environment variable).

        Raises InputErrors for parts that do not fit together.
        """
        self.spec = spec
        self.interpret = interpreting() if interpret is None else interpret
        self.joints = tuple(spec.joints)
        # the ticks with numbers of the plant as inputs, and their names
        self.opened: tuple[tuple[str, ...], TickModel] | None = None
        schedule, drivers = spec.schedule, spec.drivers
        reading = Reading(spec.source.place, [], spec.path.parent)
        self.guard = guard_of(spec)
        self.limits = self.guard.limits
        self.plant = build_plant(spec, real_joints(drivers), reading)
        loops = build_loops(spec, self.plant, self.limits, reading)
        _check_real_joints(spec, reading)
        self.contexts = driver_contexts(drivers, self.joints, self.limits, schedule.step_ns * 1e-9, spec.source)
        try:
            self.bus_loads = bus_loads(drivers, self.contexts)
        except InputError as error:
            reading.errors.append(error)
        check_reference_limits(loops, spec, reading)
        encoders = build_encoders(spec, self.plant.model.dof_units)
        self.guard = with_encoders(with_real_defaults(self.guard, spec, followed_positions(loops)), spec, encoders)
        if reading.errors:
            raise InputErrors(reading.errors)
        self.tick_model = TickModel(
            plant=self.plant,
            encoders=encoders,
            loops=[loop for loop in loops if loop is not None],
            guard=self.guard,
            integrator=schedule.integrator,
            step_ns=schedule.step_ns,
            substeps=schedule.substeps,
            compiled=not self.interpret,
            loads=load_motors(self.joints, self.plant.rotors, drivers),
            bandwidths=observer_bandwidths(drivers),
            drive_controlled=drive_controlled(self.joints, drivers),
            deceleration=spec.guard.deceleration,
            order=spec.schedule.order,
        )

    @property
    def hardware(self) -> bool:
        """Whether it has real motors."""
        return bool(self.spec.drivers)

    @property
    def watched(self) -> bool:
        """Whether every tick reads inputs of the hardware: real motors or an emergency stop."""
        return self.hardware or self.spec.guard.estop is not None

    @property
    def looped(self) -> bool:
        """Whether the loop is compiled; controllers may stay in Python, unless a watchdog is to stop them."""
        monitored = self.spec.guard.watchdog is not None and self.tick_model.untraceable
        return not (self.interpret or self.watched or monitored)

    @property
    def native(self) -> bool:
        """Whether a whole tick is compiled."""
        return self.looped and not self.tick_model.untraceable

    @cached_property
    def tasks(self) -> tuple[TaskTime, ...]:
        """The tasks of a tick in running order, with their deadlines."""
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

    @cached_property
    def observe(self) -> BatchFunction | Interpreted:
        """(start, row) -> all signals, for batches of rows; start: the flat BumplessStart of their run."""
        start = self.tick_model.layout.place("bumpless_start").shape
        ports = [ArrayPort("start", start), ArrayPort("row", (self.tick_model.row.size,))]
        outputs = [ArrayPort("signals", (len(self.tick_model.signals.names),))]
        return compile_for_batches(self.tick_model.signals.observe, ports, "observe", outputs, self.interpret)


def _check_real_joints(spec: RigSpec, reading: Reading) -> None:
    """Record real drives of dofs of joints with a quaternion."""
    for driver in spec.drivers:
        for name in (name for name in driver.joints if is_spherical_dof(spec, name)):
            what = f"'{name}' is one dof of '{spec.owners[name]}', which turns, and cannot be real by itself"
            reading.fail(driver.at("joints", name), f"{what}; use a chain of revolute and prismatic joints")
