"""A rig made ready for scenarios: armed, in simulated time, with the faults that its scenarios may inject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from cosim.apps.scenario.faulty_ticks import SimulatedFaults
from cosim.apps.scenario.stepped_engine import SteppedEngine, stepped_engine
from cosim.core.errors import InputError
from cosim.execution.engine import Engine
from cosim.execution.hardware.emulation.fault_injection import FaultInjection
from cosim.rig.rig import Rig
from cosim.rig.run.session import make_engine
from cosim.rig.sections.rig_spec import RigSpec, TelemetrySpec
from cosim.rig.sections.scenario import ScenarioSpec
from cosim.rig.wiring.wired_rig import WiredRig


def in_simulated_time(spec: RigSpec) -> RigSpec:
    """The rig without what belongs to a clock, to hardware or to other programs."""
    return replace(
        spec,
        schedule=replace(spec.schedule, pacing=None),
        guard=replace(spec.guard, watchdog=None, estop=None),
        telemetry=TelemetrySpec(),
    )


class ArmedRig:
    """An engine that runs tick by tick, and whose faults can be changed between two ticks."""

    def __init__(self, spec: RigSpec, scenarios: Sequence[ScenarioSpec], interpret: bool | None = None) -> None:
        """scenarios: all whose faults may be injected. Raises InputErrors for parts that do not fit together."""
        self.rig: WiredRig = Rig(in_simulated_time(spec), interpret)
        _check_parts(self.rig)
        simulated = spec.scenario_context.simulated
        faults = [
            (fault.spec, scenario.place((*fault.key, "joint")))
            for scenario in scenarios
            for fault in scenario.faults
            if fault.spec.joint in simulated
        ]
        self._simulated = SimulatedFaults(self.rig, faults) if faults else None
        if self._simulated is not None:
            self.rig = self._simulated.rig
        self.engine: Engine = stepped_engine(self.rig) if spec.drivers else make_engine(self.rig)
        self.start = self.engine.view("bumpless_start").copy()

    def begin(self) -> None:
        """Switch the motors on, before tick 0. Raises CosimError for a rig that cannot be opened or armed."""
        self.engine.open()
        if isinstance(self.engine, SteppedEngine):
            self.engine.begin(self.rig.spec.schedule.blend)
        else:
            self.engine.arm()
        self.start[:] = self.engine.view("bumpless_start")
        _ = self.signals(self._with_numbers(np.zeros((1, self.engine.program.row))))  # compiled before forks

    @property
    def step(self) -> float:
        """s"""
        return self.rig.tick_model.step

    @cached_property
    def units(self) -> dict[str, str]:
        """Signal of the rig, or position error of a joint with a reference -> its unit, in the order of the columns."""
        own = {name: signal.unit for name, signal in self.rig.tick_model.signals.declared.items()}
        errors = {f"{joint}/position_error": own[f"{joint}/position"] for joint in self._followed}
        return own | errors

    @cached_property
    def names(self) -> dict[str, int]:
        """Signal -> its column."""
        return {name: k for k, name in enumerate(self.units)}

    @cached_property
    def _followed(self) -> list[str]:
        known = set(self.rig.tick_model.signals.names)
        return [name for name in self.rig.joints if {f"{name}/position", f"{name}/reference_position"} <= known]

    def run(self, count: int) -> tuple[np.ndarray, str]:
        """(rows (k, nr) of the next `count` ticks, why there are fewer or "")."""
        rows, fault = self.engine.run(count)
        return self._with_numbers(rows), fault

    def _with_numbers(self, rows: np.ndarray) -> np.ndarray:
        """Rows that end with the numbers of the plant that faults have changed in these ticks."""
        if self._simulated is None:
            return rows
        numbers = self._simulated.numbers
        return np.concatenate([rows, np.broadcast_to(numbers, (len(rows), len(numbers)))], axis=1)

    def own_signals(self, start: np.ndarray, rows: np.ndarray, out: None = None) -> np.ndarray:
        """(k, n) the signals of the rig; start (k, …): the flat BumplessStart for each row."""
        return self.rig.observe(start, rows) if self._simulated is None else self._simulated.observe(start, rows)

    def signals(self, rows: np.ndarray) -> np.ndarray:
        """(k, n) all signals of rows (k, nr)."""
        own = self.own_signals(np.broadcast_to(self.start, (len(rows), *self.start.shape)), rows)
        pairs = [(f"{name}/reference_position", f"{name}/position") for name in self._followed]
        columns = [own[:, self.names[a]] - own[:, self.names[b]] for a, b in pairs]
        for k, name in enumerate(self._followed):
            if (measured := self.names.get(f"{name}/measured_error")) is not None:
                columns[k] = own[:, measured]
        return np.column_stack([own, *columns])

    def inject(self, active: Sequence[FaultInjection]) -> None:
        """From now on exactly these faults are active."""
        if self._simulated is not None:
            self._simulated.apply(self.engine, active)
        if isinstance(self.engine, SteppedEngine):
            self.engine.server.inject(active)

    def time_until_off(self, longest: float) -> float | None:
        """After a stop: time [s] until no motor exerts an effort, None if more than `longest`; simulated motors are off
        with the stop."""
        return self.engine.time_until_off(longest) if isinstance(self.engine, SteppedEngine) else 0.0

    def close(self) -> None:
        self.engine.close()


def _check_parts(rig: WiredRig) -> None:
    """Raises InputError for parts whose states a forked process would not have for itself."""
    coupling = rig.tick_model.coupling
    if coupling is not None and coupling.in_python:
        names = ", ".join(f"'{name}'" for name in coupling.in_python)
        raise InputError(
            f"scenarios need compiled parts, and {names} runs in Python; see cosim check", rig.place(("parts",))
        )
