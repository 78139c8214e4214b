"""Template drives behind the driver contract: their protocol; everything else is in `common`."""

from __future__ import annotations

import math

from cosim.core.driver_contract import DriverContext
from cosim.plugins.drivers.common.cycle import Transmission
from cosim.plugins.drivers.common.frame_layout import ReceivedFrame
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.common.node_driver import OFF, NodeDriver, Request
from cosim.plugins.drivers.common.wiring import JointParams
from cosim.plugins.drivers.template import codec, cycle
from cosim.plugins.drivers.transport import CanFrame, Connection

REQUESTS = {"state": codec.STATE, "identity": codec.WHO, "clear": codec.CLEAR, "enable": codec.ENABLE}


class TemplateDriver(NodeDriver[CanFrame, JointParams]):
    faults = codec.FAULTS

    def __init__(self, context: DriverContext, link: Connection[CanFrame], watchdog: float) -> None:
        super().__init__(context, link, watchdog)
        self.interpreted = self._cycle = InterpretedCycle(
            cycle.reception(list(self._nodes)), [[0.0] for _ in self.joints]
        )
        limits = [self._guard_limits(k)["effort"] for k in range(len(self.joints))]
        self._effort_limit = [math.ceil(min(1e3 * limit, 0xFFFF)) for limit in limits]  # mN·m

    def _check_identity(self, k: int, identity: tuple[float, ...]) -> None:
        version, velocity, effort = identity
        if version != codec.VERSION:
            raise self._drive_error(k, f"{self._drive_name(k)} has protocol {version:g}; update its firmware")
        self._check_limits(k, [("effort", effort, "effort limit"), ("velocity", 0.1 * velocity, "velocity limit")])

    def _request(self, k: int, request: Request) -> CanFrame:
        return codec.encode(codec.REQUEST, self._wiring[k].address, REQUESTS[request])

    def _off(self, k: int) -> CanFrame:
        return codec.encode(codec.COMMAND, self._wiring[k].address, 0, 0, 0, 0.0)

    # --- the cycle ---

    def _prepare(self, mode: str) -> None:
        super()._prepare(mode)
        for settings in self._cycle.settings:
            settings[cycle.ON] = codec.MODES.index(mode)

    def _transmission(self, mode: str) -> Transmission:
        head, wired = (
            (codec.MODES.index(mode), math.ceil(100 * self.watchdog)),
            zip(self._wiring, self._effort_limit, strict=True),
        )
        return cycle.transmission(mode, (codec.encode(codec.COMMAND, j.address, *head, most, 0.0) for j, most in wired))

    def _polls(self) -> list[CanFrame]:
        return [self._request(k, "state") for k in range(len(self.joints))]

    def _judge(self, received: ReceivedFrame, t_ns: int) -> None:
        mode, fault = (int(number) for number in self._cycle.numbers[received.joint][cycle.MODE :])
        if received.frame.id & ~0x7F == codec.STATUS:
            known = codec.MODES[mode] if mode < len(codec.MODES) else OFF
            self._answered(received.joint, known, fault, t_ns)

    def _take(self, item: CanFrame) -> None:
        k, message = self._nodes.get(item.id & 0x7F), codec.decode(item)
        if k is not None and message is not None and message[0] == codec.IDENTITY:
            self._identity[k] = message[1]
        else:
            super()._take(item)
