"""The configuration of a Modbus drive: the registers that its map in the rig lists as `settings`."""

from __future__ import annotations

from collections.abc import Mapping

from cosim.core.errors import RunError
from cosim.plugins.drivers.common.node_driver import ANSWER_TIME
from cosim.plugins.drivers.modbus import codec
from cosim.plugins.drivers.modbus.driver import ModbusDriver
from cosim.plugins.drivers.modbus.params import RegisterPoint

WITHOUT = "list them under 'registers.settings'"


def read(driver: ModbusDriver, k: int) -> dict[str, float]:
    """Name -> value of the settings of the drive of joint k. Raises RunError for one that does not answer."""
    return {name: _read(driver, k, name, point) for name, point in driver._maps[k].setting_points.items()}


def write(driver: ModbusDriver, k: int, changes: Mapping[str, float]) -> None:
    """Write settings of a drive that is off, and let it keep them if the map has a word for that. Raises RunError."""
    map = driver._maps[k]
    for name, value in changes.items():
        point = map.setting_points.get(name)
        if point is None:
            raise RunError(f"joint '{driver.joints[k]}': its map has no setting '{name}'; add it, or take it out")
        driver._write(k, point.register, point.words(value))
    if map.store is not None:
        driver._write(k, map.store.register, (map.store.value,))


def _read(driver: ModbusDriver, k: int, name: str, point: RegisterPoint) -> float:
    node, span = driver._wiring[k].address, point.span
    request = codec.encode(codec.RtuRequest(node, codec.READ, span.start, len(span)))
    memory = driver._memory[k]
    for register in span:
        memory.pop(register, None)
    if not driver._wait(lambda: all(r in memory for r in span), ANSWER_TIME, lambda: driver.link.send(request, 0)):
        what = driver._refused.get(k) or f"node {node} did not report setting '{name}'"
        raise RunError(f"joint '{driver.joints[k]}': {what}; correct 'registers'")
    value = point.value(memory)
    return value if point.type == "float32" else round(value / point.scale) * point.scale
