"""The commands of commissioning: what they do, their arguments and options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

Word = tuple[tuple[str, ...], dict[str, Any]]


def _word(*names: str, **settings: Any) -> Word:
    return names, settings


def scan(bus: str | None, port: str | None, family: str | None, output: Path | None) -> None:
    """Find the drives on a bus or serial port, and write the section `drivers` of a rig."""
    from cosim.commissioning.scan_command import scan_bus

    scan_bus(bus, port, family, output)


def add_commands(add: Callable[..., None], rig: Word, overrides: Word, overlay: Word) -> None:
    """Add the commands; add(run, *words) adds one; the others are words that they share with other commands."""
    add(
        scan,
        _word("--bus", metavar="BUS", help="can0, or its keys, e.g. 'interface: slcan, channel: /dev/ttyACM0'"),
        _word("--port", metavar="PORT", help="/dev/ttyUSB0, or its keys, e.g. 'port: /dev/ttyUSB0, baudrate: 57600'"),
        _word("--family", metavar="NAME", help="search for drives of this family only"),
        _word("-o", dest="output", metavar="F.yaml", type=Path, help="write the section; default: print it"),
    )
