"""The commands of commissioning: what they do, their arguments and options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cosim.cli.command_tree import Word, names_in, word
from cosim.cli.confirm import MOTORS, TURNS, Asking, confirm
from cosim.core.errors import InputError

if TYPE_CHECKING:
    from cosim.rig.reading.yaml_source import Override
    from cosim.rig.rig import Rig


SETTINGS = Asking(
    "Type yes to change the settings of the drives: ",
    "settings of drives would change and there is no terminal to confirm on; check the list and pass --yes",
    "not confirmed, the settings stay as they are",
)


def scan(bus: str | None, port: str | None, family: str | None, output: Path | None) -> None:
    """Find drives on a bus or serial port, and write their section of a rig."""
    from cosim.apps.commissioning.scan_command import scan_bus

    scan_bus(bus, port, family, output)


def probe(
    rig: Path, joints: list[str], overrides: list[Override], effort: float, travel: str, yes: bool, clear_faults: bool
) -> None:
    """Check the wiring of real joints by small bounded motions."""
    from cosim.apps.commissioning.probe_command import probe_rig, settings_of

    settings = settings_of(effort, travel)
    loaded = _loaded(rig, overrides)
    probe_rig(loaded, joints, settings, _confirmed(loaded, yes, clear_faults))


def jog(
    rig: Path,
    joint: str,
    overrides: list[Override],
    by: str | None,
    speed: str | None,
    step: str | None,
    effort: float,
    hold: str,
    yes: bool,
    allow_turns: bool,
    clear_faults: bool,
) -> None:
    """Move one real joint slowly, under the guard."""
    from cosim.apps.commissioning.jog_command import jog_joint

    held = names_in(hold)
    loaded = _loaded(rig, overrides)
    confirmed = _confirmed(loaded, yes, clear_faults)
    jog_joint(
        loaded, joint, by, speed, step, effort, held, confirmed, lambda lines: _confirm(lines, allow_turns, TURNS)
    )


def home(
    rig: Path,
    joints: list[str],
    overrides: list[Override],
    at: str | None,
    towards: str,
    speed: str | None,
    effort: float,
    travel: str | None,
    output: Path | None,
    yes: bool,
    clear_faults: bool,
) -> None:
    """Find the zero of real joints at their hard stops."""
    from cosim.apps.commissioning.calibrate_command import HomeOptions, home_joints

    options = HomeOptions(at, towards, speed, effort, travel)
    loaded = _loaded(rig, overrides)
    home_joints(loaded, joints, options, output, _confirmed(loaded, yes, clear_faults))


def calibrate(
    rig: Path,
    joint: str,
    overrides: list[Override],
    marks: list[str],
    cogging: bool,
    order: int,
    speed: str | None,
    effort: float,
    travel: str | None,
    output: Path | None,
    yes: bool,
    clear_faults: bool,
) -> None:
    """Find direction, ratio, zero or cogging of a real joint."""
    from cosim.apps.commissioning.calibrate_command import CoggingOptions, calibrate_by_marks, calibrate_cogging

    if bool(marks) == cogging:
        raise InputError(
            "give either marks to which the joint is moved by hand, or --cogging", "cosim drives calibrate"
        )
    loaded = _loaded(rig, overrides)
    if cogging:
        options = CoggingOptions(speed, travel, effort, order)
        calibrate_cogging(loaded, joint, options, output, _confirmed(loaded, yes, clear_faults))
    else:
        calibrate_by_marks(loaded, joint, marks, output, _wait_for_enter)


def _wait_for_enter(request: str) -> None:
    """Raises InputError at the end of the input."""
    print(request, end="", flush=True)
    if not sys.stdin.readline():
        print()
        raise InputError("the input ended before the last mark; nothing was written", "cosim drives calibrate")


def save(rig: Path, file: Path, overrides: list[Override]) -> None:
    """Save the settings of the drives of a rig in a file."""
    _settings("save", rig, file, overrides, yes=False)


def compare(rig: Path, file: Path, overrides: list[Override]) -> None:
    """Compare the settings of the drives of a rig with a file."""
    _settings("compare", rig, file, overrides, yes=False)


def restore(rig: Path, file: Path, overrides: list[Override], yes: bool) -> None:
    """Restore the settings of the drives of a rig from a file."""
    _settings("restore", rig, file, overrides, yes)


def _settings(
    action: Literal["save", "compare", "restore"], rig: Path, file: Path, overrides: list[Override], yes: bool
) -> None:
    from cosim.apps.commissioning.drives_command import drives_of

    drives_of(_loaded(rig, overrides), action, file, lambda lines: _confirm(lines, yes, SETTINGS))


def _loaded(rig: Path, overrides: list[Override]) -> Rig:
    from cosim.output.console import busy
    from cosim.rig.rig import load_rig

    with busy(f"compiling {rig.stem}"):
        return load_rig(rig, overrides)


def _confirm(lines: Sequence[str], yes: bool, asking: Asking | None = None) -> None:
    confirm(lines, yes, sys.stdin, sys.stdout, MOTORS if asking is None else asking)


def _confirmed(rig: Rig, yes: bool, clear_faults: bool) -> Callable[[Sequence[str]], object]:
    """What confirms the motion, and then clears faults of the drives where that is wanted."""

    def confirmed(lines: Sequence[str]) -> None:
        _confirm(lines, yes)
        if clear_faults:
            from cosim.apps.commissioning.session import CommissioningSession

            CommissioningSession(rig, "clear").clear_faults()

    return confirmed


def add_commands(add: Callable[..., None], rig: Word, overrides: Word, overlay: Word) -> None:
    """Add the commands; add(name, run, *words) adds one; the others are words that they share with other commands."""
    add(
        "drives scan",
        scan,
        word("--bus", metavar="BUS", help="can0, or its keys, e.g. 'interface: slcan, channel: /dev/ttyACM0'"),
        word("--port", metavar="PORT", help="/dev/ttyUSB0, or its keys, e.g. 'port: /dev/ttyUSB0, baudrate: 57600'"),
        word("--family", metavar="NAME", help="search for drives of this family only"),
        word("-o", dest="output", metavar="F.yaml", type=Path, help="write the section; default: print it"),
    )
    yes = word("--yes", action="store_true", help="switch motors on without confirmation")
    about_faults = "clear faults of the drives first; look at their causes before"
    clear = word("--clear-faults", action="store_true", help=about_faults)
    joints = word("joints", metavar="JOINT", nargs="*", help="real joints; default: all of them, in their order")
    joint = word("joint", metavar="JOINT", help="a real joint")

    def effort(default: float) -> Word:
        about = f"largest effort, as a fraction of the joint's limit; default: {default:g}"
        return word("--effort", metavar="X", type=float, default=default, help=about)

    travel = "way of each motion, e.g. 2 deg or 1 mm; default: 2 deg, and 2 mm for linear joints"
    add(
        "drives probe",
        probe,
        rig,
        joints,
        overrides,
        overlay,
        effort(0.2),
        word("--travel", metavar="X", default="", help=travel),
        yes,
        clear,
    )
    add(
        "drives jog",
        jog,
        rig,
        joint,
        overrides,
        overlay,
        word("--by", metavar="X", help="move by this way and end, e.g. '5 deg' or '-2 mm'; default: keys move it"),
        word("--speed", metavar="X", help="e.g. '2 deg/s'; default: 5 deg/s or 5 mm/s, up to a tenth of the limit"),
        word("--step", metavar="X", help="way of each press of a key; default: it moves as long as the key repeats"),
        effort(0.5),
        word("--hold", metavar="A,B", default="", help="real joints that are held meanwhile; default: none, all off"),
        yes,
        word("--allow-turns", action="store_true", help="the drives have lost no turns without power"),
        clear,
    )
    speed = word("--speed", metavar="X", help="e.g. '2 deg/s'; default: slow")
    output = word("-o", dest="output", metavar="F.yaml", type=Path, help="default: RIG.commissioning.yaml")
    add(
        "drives home",
        home,
        rig,
        joints,
        overrides,
        overlay,
        word("--at", metavar="X", help="position of the stop, e.g. '-95 deg'; default: joints.JOINT.stops"),
        word("--towards", choices=("lower", "upper"), default="lower", help="which stop; default: lower"),
        speed,
        effort(0.15),
        word("--travel", metavar="X", help="longest way to the stop; default: the range of the joint"),
        output,
        yes,
        clear,
    )
    mark = "move the joint by hand to this position, motor off; two or more give direction and ratio too"
    add(
        "drives calibrate",
        calibrate,
        rig,
        joint,
        overrides,
        overlay,
        word("--mark", dest="marks", metavar="X", action="append", default=[], help=f"{mark}; may be repeated"),
        word("--cogging", action="store_true", help="move it slowly up and back, and fit the effort that repeats"),
        word("--order", metavar="N", type=int, default=8, help="of --cogging: highest harmonic; default: 8"),
        speed,
        effort(0.5),
        word("--travel", metavar="X", help="of --cogging; default: 1.2 revolutions of the motor"),
        output,
        yes,
        clear,
    )
    file = word("file", metavar="F.yaml", type=Path, help="of the settings")
    add("drives save", save, rig, file, overrides, overlay)
    add("drives compare", compare, rig, file, overrides, overlay)
    without = word("--yes", action="store_true", help="restore without confirmation")
    add("drives restore", restore, rig, file, overrides, overlay, without)
