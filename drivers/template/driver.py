"""Template drives behind the driver contract: their protocol; everything else is in `common`."""

from __future__ import annotations

import math

from cosim.core.driver_contract import DriverContext
from cosim.plugins.drivers.common.node_driver import NodeDriver, Request
from cosim.plugins.drivers.common.wiring import JointParams
from cosim.plugins.drivers.template import codec
from cosim.plugins.drivers.transport import CanFrame, Connection

REQUESTS = {"state": codec.STATE, "identity": codec.WHO, "clear": codec.CLEAR, "enable": codec.ENABLE}


class TemplateDriver(NodeDriver[CanFrame, JointParams]):
    faults = codec.FAULTS

    def __init__(self, context: DriverContext, link: Connection[CanFrame], watchdog: float) -> None:
        super().__init__(context, link, watchdog)
        limits = [self._guard_limits(k)["effort"] for k in range(len(self.joints))]
        self._effort_limit = [math.ceil(min(1e3 * limit, 0xFFFF)) for limit in limits]  # mN·m

    def _check_identity(self, k: int, identity: tuple[float, ...]) -> None:
        version, velocity, effort = identity
        if version != codec.VERSION:
            raise self._drive_error(k, f"{self._drive_name(k)} has protocol {version:g}; update its firmware")
        self._check_limits(k, [("effort", effort, "effort limit"), ("velocity", 0.1 * velocity, "velocity limit")])

    def _request(self, k: int, request: Request) -> CanFrame:
        return codec.encode(codec.REQUEST, self._wiring[k].address, REQUESTS[request])

    def _command(self, k: int, position: float, velocity: float, effort: float) -> CanFrame:
        mode, target = codec.MODES.index(self._mode), self._target(position, velocity, effort)
        values = (mode, math.ceil(100 * self.watchdog), self._effort_limit[k], target)
        return codec.encode(codec.COMMAND, self._wiring[k].address, *values)

    def _off(self, k: int) -> CanFrame:
        return codec.encode(codec.COMMAND, self._wiring[k].address, 0, 0, 0, 0.0)

    def _take(self, item: CanFrame) -> None:
        k, message, feedback = self._nodes.get(item.id & 0x7F), codec.decode(item), self._feedback
        if k is None:
            return
        match message:
            case codec.IDENTITY, identity:
                self._identity[k] = identity
            case codec.MOTION, (position, velocity):
                feedback.position[k], feedback.velocity[k] = position, velocity
            case codec.STATUS, (effort, temperature, mode, fault) if mode < len(codec.MODES):
                feedback.effort[k], feedback.temperature[k] = effort, 0.1 * temperature
                self._answered(k, codec.MODES[mode], fault, item.t_ns)
            case None | (codec.STATUS, _):
                self._lost += 1
