"""Whether a drive fits, by its data sheet: EDS and DCF (CiA 306), XDD and XDC (CiA 311), ESI (EtherCAT)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cosim.plugins.drivers.cia402.data_sheet import ini_reader, xml_reader
from cosim.plugins.drivers.cia402.data_sheet.fitness import SheetJoint, report
from cosim.plugins.drivers.cia402.data_sheet.sheet import Sheet, read_text
from cosim.plugins.drivers.cia402.params import JointParams, Params

__all__ = ["SheetJoint", "check", "read"]

MOST_DRIVES = 40  # of a file that are reported


def read(path: Path) -> list[Sheet]:
    """The drives of a data sheet. Raises InputError with file and line."""
    data = read_text(path)
    if data.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1] == b"<":
        return xml_reader.read(path, data)
    return [ini_reader.read(path, data)]


def check(path: Path, joints: Sequence[tuple[str, str, Params, JointParams, float, float]]) -> tuple[list[str], bool]:
    """(the lines of a report, whether a drive fits). joints: name, mode, driver, wiring, limit of effort at the drive
    [N·m] and torque constant at the drive [N·m/A] of each joint of a rig; none: every mode is looked at.

    Raises InputError with file and line.
    """
    sheets, lines, fits = read(path), [], False
    wanted = [SheetJoint(*joint) for joint in joints]
    for sheet in sheets[:MOST_DRIVES]:
        own, fitting = report(sheet, wanted)
        lines += own
        fits |= fitting
    if len(sheets) > MOST_DRIVES:
        lines.append(f"and {len(sheets) - MOST_DRIVES} more drives")
    return lines, fits
