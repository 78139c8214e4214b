"""What a data sheet means for the driver: missing objects, process data, units and limits, and the conclusion."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cosim.core.errors import listed
from cosim.core.units import DEGREE, RPM
from cosim.plugins.drivers.cia402 import process_data, profile
from cosim.plugins.drivers.cia402.data_sheet.sheet import Sheet
from cosim.plugins.drivers.cia402.factor_group import (
    Contradiction,
    Declared,
    DriveUnits,
    FactorGroup,
    Ratio,
    drive_units,
    velocity_unit_of,
)
from cosim.plugins.drivers.cia402.manufacturers import deviation_of, manufacturer_of
from cosim.plugins.drivers.cia402.params import JointParams, Params

_CONFIGURED = ("DCF", "XDC")
_RECEIVE_MAPS, _TRANSMIT_MAPS = range(0x1600, 0x1604), range(0x1A00, 0x1A04)
_NEEDED_ALWAYS = {0x606000: "mode of operation", 0x650200: "supported drive modes"}
_CONSUMER = 0x101601
# objects whose values are looked at, besides those that map process data
_READ = frozenset(
    {0x100000, 0x101801, 0x101802, 0x607200, 0x607500, 0x607600, 0x607E00, 0x608000, 0x60A800, 0x60A900, 0x650200}
    | {index << 8 | sub for index in (0x608F, 0x6090, 0x6091, 0x6092, 0x6096, 0x6097) for sub in (1, 2)}
)
_MAPPING = (0x16, 0x1A)
_NO_LIMIT = 0xFFFFFFFF  # the largest number, which limits nothing


class SheetJoint(NamedTuple):
    """A joint of a rig that the drive is for. effort [N·m], torque_constant [N·m/A]: at the shaft of the drive."""

    name: str
    mode: str
    params: Params
    wiring: JointParams
    effort: float
    torque_constant: float


class Finding(NamedTuple):
    """Whether a drive fits, as far as its data sheet shows. against: why the drive does not fit; open: what the data
    sheet does not say."""

    against: list[str]
    open: list[str]

    @property
    def conclusion(self) -> str:
        if self.against:
            return f"this drive does not fit, because {'; '.join(self.against)}"
        return f"cannot tell: {'; '.join(self.open)}" if self.open else "this drive fits"


def report(sheet: Sheet, joints: Sequence[SheetJoint]) -> tuple[list[str], bool]:
    """(lines, whether it fits: all joints, or one of the modes if there are none)."""
    lines = [f"{sheet.path}: {_title(sheet)}", *(f"  {line}" for line in _about(sheet))]
    if joints:
        findings = [(f"joint '{joint.name}', {joint.mode} mode", _of_joint(sheet, joint)) for joint in joints]
    else:
        findings = [(f"{mode} mode", _without_rig(sheet, mode)) for mode in profile.MODES]
    lines += [f"  {name}: {found.conclusion}" for name, found in findings]
    fitting = [not found.against for _, found in findings]
    return lines, all(fitting) if joints else any(fitting)


def _title(sheet: Sheet) -> str:
    numbers = (("vendor", sheet.vendor), ("product", sheet.product))
    identity = ", ".join(f"{word} 0x{value:X}" for word, value in numbers if value is not None)
    return f"{sheet.kind} of '{sheet.name}'{', ' if identity else ''}{identity}"


def _about(sheet: Sheet) -> Iterator[str]:
    receive, transmit = _maps(sheet, _RECEIVE_MAPS), _maps(sheet, _TRANSMIT_MAPS)
    if receive or transmit:
        free = [_free(sheet, index) for index in (*receive, *transmit)]
        how = "mapped freely" if all(free) else "with fixed maps" if True not in free else "some with fixed maps"
        yield f"process data: {len(receive)} receive and {len(transmit)} transmit PDOs, {how}"
    else:
        yield "process data: not described"
    if wrong := [text for _, text in sheet.unread()]:
        yield f"values that are no numbers: {listed(wrong)}"
    known = deviation_of(sheet.vendor, sheet.product)
    if known is not None:
        yield f"known deviation: {known.name} ({known.source})"
    when = "as configured" if sheet.kind in _CONFIGURED else "by default"
    try:
        yield f"units {when}: {_units_line(_units(sheet, Declared(rated_torque=None)))}"
    except Contradiction as error:
        yield f"units {when}: cannot tell: the drive {error}"
    limits = (("max torque", 0x607200, "per mille of the rated torque"), ("max motor speed", 0x608000, "rpm"))
    values = [(name, sheet.value(key), unit) for name, key, unit in limits]
    found = [f"{name} {value} {unit}" for name, value, unit in values if value and value != _NO_LIMIT]
    if found:
        yield f"limits {when}: {', '.join(found)}"


def _units_line(units: DriveUnits) -> str:
    velocity = "velocity unknown" if units.velocity is None else f"velocity {units.velocity / RPM:.6g} rpm"
    return f"position {units.position / DEGREE:.6g} deg, {velocity}, torque {abs(units.effort):.4g} N*m"


def _units(sheet: Sheet, declared: Declared) -> DriveUnits:
    """Raises Contradiction."""

    def ratio(index: int) -> Ratio | None:
        first, second = (sheet.value(index << 8 | sub) for sub in (1, 2))
        return (first, second) if first and second else None

    group = FactorGroup(
        encoder=ratio(0x608F),
        velocity_encoder=ratio(0x6090),
        gear_ratio=ratio(0x6091),
        feed_constant=ratio(0x6092),
        velocity_factor=ratio(0x6096),
        acceleration_factor=ratio(0x6097),
        polarity=sheet.value(0x607E00),
        position_unit=sheet.value(0x60A800),
        velocity_unit=sheet.value(0x60A900),
        rated_current=sheet.value(0x607500),
        rated_torque=sheet.value(0x607600),
    )
    return drive_units(group, declared, manufacturer_of(sheet.vendor, sheet.product))


# --- the conclusion --------------------------------------------------------------------------------------


def _without_rig(sheet: Sheet, mode: str) -> Finding:
    """Of a mode, for a rig that states nothing of the drive."""
    found = _of_mode(sheet, mode, sheet.ethercat)
    try:
        units = _units(sheet, Declared(rated_torque=None)) if sheet.entries else None
    except Contradiction as error:
        found.open.append(f"it {error}")
    else:
        _check_velocity(units, mode, found)
    return found


def _check_velocity(units: DriveUnits | None, mode: str, found: Finding) -> None:
    if mode == "velocity" and units is not None and units.velocity is None:
        found.open.append("the unit of its velocities is not stated; give 'velocity_unit'")


def _of_joint(sheet: Sheet, joint: SheetJoint) -> Finding:
    wired, ethercat = joint.wiring, joint.params.ethercat is not None
    found = _of_mode(sheet, joint.mode, ethercat)
    for word, wanted, own in (("vendor", wired.vendor, sheet.vendor), ("product", wired.product, sheet.product)):
        if wanted is not None and own is not None and wanted != own:
            found.against.append(f"it is of {word} 0x{own:X}, the rig expects 0x{wanted:X}")
    if sheet.ethercat != ethercat:
        found.open.append(
            f"the rig has the drive on {'EtherCAT' if ethercat else 'CANopen'}, which this does not describe"
        )
    declared = Declared(
        wired.cpr,
        None if wired.velocity_unit is None else velocity_unit_of(wired.velocity_unit),
        wired.rated_torque,
        abs(wired.ratio),
        joint.torque_constant,
        joint.effort,
    )
    try:
        units = _units(sheet, declared)
    except Contradiction as error:
        # what is a default may be configured otherwise in the drive
        (found.against if sheet.kind in _CONFIGURED else found.open).append(f"it {error}")
        return found
    _check_velocity(units, joint.mode, found)
    maximum = sheet.value(0x607200)
    if maximum and math.isfinite(joint.effort) and abs(units.effort) * maximum < joint.effort:
        what = f"its max torque is {abs(units.effort) * maximum:.4g} N*m, the joint's limit {joint.effort:.4g} N*m"
        (found.against if sheet.kind in _CONFIGURED else found.open).append(what)
    return found


def _of_mode(sheet: Sheet, mode: str, ethercat: bool) -> Finding:
    found = Finding([], [])
    if not sheet.entries:
        found.open.append("it has no list of objects (an offline dictionary)")
    else:
        _check_objects(sheet, mode, ethercat, found)
        if wrong := [text for key, text in sheet.unread() if key in _READ or key >> 16 in _MAPPING]:
            found.open.append(f"what it needs is no number: {listed(wrong)}")
    _check_process_data(sheet, mode, found)
    return found


def _check_objects(sheet: Sheet, mode: str, ethercat: bool, found: Finding) -> None:
    kind = sheet.value(0x100000)
    if kind is not None and kind & 0xFFFF != 402:
        found.against.append(f"its device type (1000h) is of profile {kind & 0xFFFF}, not 402")
    # a drive with fixed maps is used with what these have, see `_check_process_data`
    fixed = not all(_free(sheet, index) for maps in (_RECEIVE_MAPS, _TRANSMIT_MAPS) for index in _maps(sheet, maps))
    objects = process_data.indispensable(mode) if fixed else sum(process_data.needed(mode), ())
    missing = [each for each in objects if each >> 8 not in sheet.entries]
    if missing:
        found.against.append(f"it lacks {process_data.named(missing)}")
    absent = [f"{name}, {key >> 8:X}h" for key, name in _NEEDED_ALWAYS.items() if key not in sheet.entries]
    if absent:
        found.against.append(f"it lacks {', '.join(absent)}")
    if not ethercat and _CONSUMER not in sheet.entries:
        found.against.append("it has no heartbeat consumer (1016h), so that it would run on without commands")
    modes = sheet.value(0x650200)
    if 0x650200 in sheet.entries and not modes and not sheet.entries[0x650200].unread:
        found.open.append("its modes (6502h) have no default value")
    elif modes and not modes & profile.supported(profile.MODES[mode]):
        found.against.append(f"it has no mode '{profile.MODE_NAMES[profile.MODES[mode]]}' (6502h)")


def _maps(sheet: Sheet, indices: range) -> list[int]:
    return [index for index in indices if index in (sheet.maps or {key >> 8 for key in sheet.entries})]


def _free(sheet: Sheet, index: int) -> bool:
    if index in sheet.maps:
        return not sheet.maps[index][1]
    entries = (sheet.entries.get(index << 8 | sub) for sub in (0, 1))
    return all(entry is None or entry.access in ("rw", "") for entry in entries)


def _mapped(sheet: Sheet, index: int) -> list[int]:
    """What a PDO has by default."""
    if index in sheet.maps:
        return list(sheet.maps[index][0])
    count = min(sheet.value(index << 8) or 0, 64)
    return [value for sub in range(1, count + 1) if (value := sheet.value(index << 8 | sub))]


def _check_process_data(sheet: Sheet, mode: str, found: Finding) -> None:
    received, transmitted = process_data.needed(mode)
    wanted = (
        ("receive", "r", received, _RECEIVE_MAPS, sum(map(bool, process_data.RPDO_OBJECTS[mode]))),
        ("transmit", "t", transmitted, _TRANSMIT_MAPS, len(process_data.TPDO_OBJECTS)),
    )
    for word, letter, objects, indices, count in wanted:
        maps = _maps(sheet, indices)
        if not maps:
            found.open.append(f"its {word} PDOs are not described")
            continue
        own = {each for index in maps for each in _mapped(sheet, index)}
        if not all(_free(sheet, index) for index in maps):
            missing = [each for each in process_data.indispensable(mode) if each in objects and each not in own]
            if missing:
                found.against.append(f"its {word} PDOs have fixed maps without {process_data.named(missing)}")
            continue
        if len(maps) < count and not sheet.ethercat:
            found.against.append(f"it has {len(maps)} {word} PDO, and {count} are needed")
        known = [each for each in objects if each >> 8 in sheet.entries]
        bad = [each for each in known if letter not in sheet.entries[each >> 8].mapping and each not in own]
        if bad:
            found.against.append(f"it cannot map {process_data.named(bad)} to a {word} PDO")
