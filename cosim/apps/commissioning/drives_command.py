"""`cosim drives save`, `compare` and `restore`: the settings of the drives of a rig, and a file of them.

A family whose drives have settings has a module `configuration.py` with `read(driver, k)`, name -> number of the drive
of joint k, and `write(driver, k, changes)`, which sets numbers and keeps them without power. Motors are off. `WITHOUT`,
if it is there, gives what to do where a drive has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import yaml

from cosim.apps.commissioning.session import CommissioningSession
from cosim.core.driver_contract import HardwareDriver
from cosim.core.errors import InputError, RunError, plural
from cosim.core.types import Limits
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.output.console import refuse_inputs
from cosim.output.output_files import check_output
from cosim.rig.reading.driver_family import hook
from cosim.rig.reading.yaml_source import load_yaml
from cosim.rig.rig import Rig
from cosim.rig.rig_files import input_files
from cosim.rig.sections.drivers import DriverSpec

VALUE_TOLERANCE = 1e-6  # relative, of broken numbers that a drive keeps with 32 bits or prints with a few digits
Values = dict[str, float]


def save_drives(session: CommissioningSession, file: Path) -> None:
    """Write the settings of all drives into a file. Raises InputError, and RunError where no drive has any."""
    refuse_inputs(input_files(session.rig), file, "F.yaml")
    check_output(file, "F.yaml", (".yaml", ".yml"))
    values, without = read_all(session)
    for name, fix in without.items():
        spec = session.specs[name]
        what = f"{spec.plugin.name} node {spec.wiring[name].address} has no settings to save"
        print(f"{name}: {what}{'; ' * bool(fix)}{fix}")
    if not values:
        raise RunError("no drive of this rig has settings to save", str(session.rig.spec.path))
    file.write_text(settings_text(session, values), encoding="utf-8")
    for name, settings in values.items():
        print(f"{name}: {len(settings)} settings")
    print(f"wrote    {file}")


def compare_drives(session: CommissioningSession, file: Path) -> None:
    """Print what differs from a file. Raises RunError where something does."""
    rows = differences(read_file(file, session), read_all(session)[0])
    for line in lines_of(rows):
        print(line)
    if rows:
        raise RunError(f"{len(rows)} {_differ(len(rows))} from {file}", str(session.rig.spec.path))
    print(f"the drives have the settings of {file}")


def restore_drives(session: CommissioningSession, file: Path, confirm: Callable[[Sequence[str]], object]) -> None:
    """Write the settings of a file into the drives, after `confirm` of what changes. Raises RunError where a drive has
    other settings afterwards, or lacks one of the file."""
    rows = differences(read_file(file, session), read_all(session)[0])
    absent = [row for row in rows if row.actual is None]
    if absent:
        for line in lines_of(absent):
            print(line)
        what = f"{len(absent)} {plural(len(absent), 'setting')} of {file} {'is' if len(absent) == 1 else 'are'}"
        raise RunError(f"{what} not in the drives; take out what they lack", str(session.rig.spec.path))
    wanted = [row for row in rows if row.saved is not None]
    if not wanted:
        print(f"the drives have the settings of {file}")
        return
    confirm([f"{session.rig.spec.name}: these settings are restored from {file}; motors are off", *lines_of(wanted)])
    left = restore(session, wanted)
    for line in lines_of(left):
        print(line)
    if left:
        what = f"{len(left)} of {len(wanted)} settings differ from {file}"
        raise RunError(f"{what}; see the ranges in the manual", str(session.rig.spec.path))
    print(f"{len(wanted)} {plural(len(wanted), 'setting')} restored")


def drives_of(rig: Rig, action: str, file: Path, confirm: Callable[[Sequence[str]], object]) -> None:
    """action: save, compare or restore."""
    session = CommissioningSession(rig, action)
    if action == "save":
        save_drives(session, file)
    elif action == "compare":
        compare_drives(session, file)
    else:
        restore_drives(session, file, confirm)


def _differ(count: int) -> str:
    return "setting differs" if count == 1 else "settings differ"


class Difference(NamedTuple):
    """A setting of a drive that differs from a file's; None: there is none."""

    joint: str
    name: str
    saved: float | None
    actual: float | None


def read_all(session: CommissioningSession) -> tuple[dict[str, Values], dict[str, str]]:
    """(joint -> settings of its drive, joint -> what to do, of drives without any). Raises InputError and RunError."""
    found: dict[str, Values] = {}
    without: dict[str, str] = {}
    for spec, configuration in _drivers(session):
        if configuration is None:
            without |= dict.fromkeys(spec.joints, "")
            continue
        with _opened(session, spec) as driver:
            values = {name: configuration.read(driver, k) for k, name in enumerate(spec.joints)}
        found |= {name: settings for name, settings in values.items() if settings}
        without |= {name: getattr(configuration, "WITHOUT", "") for name, settings in values.items() if not settings}
    return found, without


def settings_text(session: CommissioningSession, values: Mapping[str, Values]) -> str:
    """The file with these settings."""
    by_joint = {}
    for name, settings in values.items():
        spec = session.specs[name]
        head = {"family": spec.plugin.name, "address": spec.wiring[name].address}
        by_joint[name] = {**head, "settings": dict(settings)}
    title = f"# settings of the drives of {session.rig.spec.name}, by cosim drives save"
    return f"{title}\n{yaml.safe_dump(by_joint, sort_keys=False, allow_unicode=True)}"


def read_file(path: Path, session: CommissioningSession) -> dict[str, Values]:
    """Joint -> its settings. Raises InputError for an invalid file, or one of other drives."""
    source = load_yaml(path, least="one joint")
    found: dict[str, Values] = {}
    for name, row in source.data.items():
        at = str(source.place((name,)))
        if name not in session.specs:
            raise InputError(f"the rig has no real joint '{name}'; take it out", at)
        settings = row.get("settings") if isinstance(row, dict) else None
        if not isinstance(settings, dict) or not all(_is_number(value) for value in settings.values()):
            what = "expected 'family', 'address' and 'settings' with numbers"
            raise InputError(f"{what}, as cosim drives save writes them", at)
        family = session.specs[name].plugin.name
        if row.get("family") != family:
            raise InputError(f"the settings are of {row.get('family')}, the drive of '{name}' is {family}", at)
        found[name] = dict(settings)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, str)


def differences(saved: Mapping[str, Values], actual: Mapping[str, Values]) -> list[Difference]:
    """What differs, by joint and name. Raises RunError for a joint whose drive has no settings."""
    found = []
    for joint, settings in saved.items():
        if joint not in actual:
            raise RunError(f"the drive of '{joint}' has no settings to compare; its family has none")
        names = dict.fromkeys((*settings, *actual[joint]))
        rows = [Difference(joint, name, settings.get(name), actual[joint].get(name)) for name in names]
        found += [row for row in rows if not _same(row.saved, row.actual)]
    return found


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return math.isclose(one, other, rel_tol=VALUE_TOLERANCE, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))


def restore(session: CommissioningSession, wanted: list[Difference]) -> list[Difference]:
    """Write the saved numbers into the drives, read them back, and return what still differs. Raises RunError."""
    changes: dict[str, Values] = {}
    for row in wanted:
        if row.saved is not None and row.actual is not None:
            changes.setdefault(row.joint, {})[row.name] = row.saved
    for spec, configuration in _drivers(session):
        own = [(k, name) for k, name in enumerate(spec.joints) if name in changes]
        if configuration is not None and own:
            with _opened(session, spec) as driver:
                for k, name in own:
                    configuration.write(driver, k, changes[name])
    actual, _ = read_all(session)
    return differences(changes, {name: {key: actual[name][key] for key in changes[name]} for name in changes})


def _drivers(session: CommissioningSession) -> Iterator[tuple[DriverSpec, ModuleType | None]]:
    for spec in dict.fromkeys(spec.name for spec in session.specs.values()):
        driver = next(each for each in session.rig.spec.drivers if each.name == spec)
        yield driver, hook(driver.family, "configuration")


@contextmanager
def _opened(session: CommissioningSession, spec: DriverSpec) -> Iterator[HardwareDriver]:
    """The driver of a section with its motors off, whatever limits its drives have."""
    group = session.group(spec, spec.joints, limits=_unlimited(len(spec.joints)))
    try:
        with group.named():
            group.open()
            yield _hardware(group)
    finally:
        group.driver.close()


def _hardware(group: DriverGroup) -> HardwareDriver:
    assert group.hardware is not None
    return group.hardware


def _unlimited(n: int) -> Limits:
    return Limits(np.full(n, -np.inf), *(np.full(n, np.inf) for _ in range(3)))


def lines_of(rows: list[Difference]) -> Iterator[str]:
    for row in rows:
        yield f"  {row.joint}  {row.name}: {_show(row.saved)} in the file, {_show(row.actual)} in the drive"


def _show(value: float | None) -> str:
    return "none" if value is None else str(value) if isinstance(value, int) else f"{value:.7g}"
