"""The configuration of a Dynamixel drive: the registers that it keeps without power (EEPROM)."""

from __future__ import annotations

from collections.abc import Mapping

from cosim.core.errors import RunError
from cosim.plugins.drivers.dynamixel import tables as t
from cosim.plugins.drivers.dynamixel.driver import DynamixelDriver

OWN = {t.ID.address, t.BAUD_RATE.address, t.PROTOCOL.address}  # how it is reached, and not how it is set
NAMES = {
    value.address: name.lower()
    for name, value in vars(t).items()
    if isinstance(value, t.Register) and value.address < t.EEPROM_END and value.low is not None
}


def read(driver: DynamixelDriver, k: int) -> dict[str, int]:
    """Name -> value of the registers of the drive of joint k. Raises RunError."""
    client, id = driver._client, driver._ids[k]
    return {name: client.get(id, register) for name, register in _registers(driver, k).items()}


def write(driver: DynamixelDriver, k: int, changes: Mapping[str, float]) -> None:
    """Write registers of a drive whose torque is off; it keeps them. Raises RunError for one that it refuses."""
    known = _registers(driver, k)
    for name, value in changes.items():
        if name not in known:
            raise RunError(f"joint '{driver.joints[k]}': there is no register '{name}' to set; take it out")
        driver._client.put(driver._ids[k], known[name], int(value))


def _registers(driver: DynamixelDriver, k: int) -> dict[str, t.Register]:
    """The registers of the model, by name."""
    table = t.registers(driver._models[k])
    return {name: table[address] for address, name in NAMES.items() if address in table and address not in OWN}
