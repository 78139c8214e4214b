"""The life cycle of an engine whose rig may have drivers of real motors: connecting, enabling, stopping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from cosim.core.driver_contract import Driver
from cosim.core.errors import RunError
from cosim.execution.engine import Engine, Snapshot
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.hardware.estop import Estop
from cosim.execution.hardware.manager import HardwareManager, PowerOnPlace
from cosim.execution.timing.watchdog import Watchdog
from cosim.simulation.tick.tick_model import TickModel
from cosim.simulation.tick.virtual_plant import VirtualPlant


class HardwareEngine(Engine):
    """An engine with the drivers, the emergency stop and the watchdog of a rig."""

    def __init__(
        self,
        tick_model: TickModel,
        virtual_plant: VirtualPlant,
        drivers: Sequence[tuple[Driver, np.ndarray] | DriverGroup],
        hardware: bool = False,
        estop: Callable[[ExitStack], Estop] | None = None,
        watchdog: float | None = None,
    ) -> None:
        """virtual_plant: of `tick_model`; drivers: together for all joints, each with the indices (n,) of its joints in
        the model's order; estop: opens the emergency stop; watchdog [s]: motors off when a tick takes longer."""
        super().__init__(tick_model, virtual_plant.memory)
        self.virtual_plant = virtual_plant
        groups = [item if isinstance(item, DriverGroup) else DriverGroup(*item) for item in drivers]
        self.hardware_manager = HardwareManager(groups, virtual_plant)
        self.hardware = hardware or any(group.real for group in self.hardware_manager.groups)
        self._stack, self._open_estop = ExitStack(), estop
        self._estop = Estop(())
        self._watchdog = None if watchdog is None else Watchdog(watchdog, self._on_timeout)

    @property
    def drivers(self) -> Sequence[tuple[Driver, np.ndarray]]:
        """Each with the indices (n,) of its joints."""
        return [(group.driver, group.joint_index) for group in self.hardware_manager.groups]

    def open(self) -> None:
        if self._open_estop is not None:
            self._estop = self._open_estop(self._stack)
        super().open()
        self.virtual_plant.open()
        self.hardware_manager.open()

    def clear(self) -> None:
        self.hardware_manager.clear()

    def arm(self) -> None:
        self._estop.reset()
        self.hardware_manager.enable()
        super().arm()
        if self._watchdog is not None:
            self._watchdog.start()
            self._watchdog.suspend()

    def power_on_places(self) -> Mapping[str, PowerOnPlace]:
        return self.hardware_manager.power_on_places()

    def begin_hold(self) -> Callable[[], object] | None:
        return self.hardware_manager.begin_hold()

    def end_hold(self) -> None:
        self.hardware_manager.end_hold()

    def stop(self) -> None:
        self.hardware_manager.stop()
        if self._watchdog is not None:
            self._watchdog.stop()
        super().stop()

    def close(self) -> None:
        super().close()  # stops first
        self.hardware_manager.close()
        self.virtual_plant.close()
        self._stack.close()

    def restore(self, snapshot: Snapshot) -> None:
        if self.hardware:
            raise RunError("a rig with real motors cannot return to an earlier state; arm it again instead")
        super().restore(snapshot)

    def _on_timeout(self, cause: str) -> None:
        """In the watchdog's thread."""
        self._force_stop(f"{cause} (in {self.running})")

    def _check_estop(self) -> None:
        """Raises RunError when it is pressed."""
        if cause := self._estop.pressed():
            raise RunError(f"{cause}; release it, then start again")

    def _measure_once(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        return self._measured(lambda: self.hardware_manager.measure_once(until))

    def _measure_off(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        return self._measured(lambda: self.hardware_manager.measure_off(until))

    def _measured(self, measure: Callable[[], object]) -> tuple[np.ndarray, np.ndarray]:
        self.virtual_plant.discard_sample()
        self.virtual_plant.begin(self.number * self.tick_model.step_ns)
        try:
            measure()
        finally:
            self.virtual_plant.discard_sample()
        return self.view("measured", "position").copy(), self.view("measured", "velocity").copy()
