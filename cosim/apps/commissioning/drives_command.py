"""The command `cosim drives`: save, compare and restore the settings of the drives of a rig."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cosim.apps.commissioning.drive_settings import differences, lines_of, read_all, read_file, restore, settings_text
from cosim.apps.commissioning.session import CommissioningSession
from cosim.core.errors import RunError, plural
from cosim.output.console import refuse_inputs
from cosim.output.output_files import check_output
from cosim.rig.rig import Rig
from cosim.rig.rig_files import input_files


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
