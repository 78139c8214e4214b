"""The command: read the robot, write the rig, check it, and name the next commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cosim.errors import CosimError, InputError, plural
from cosim.multibody.description.floating_base import ROOT_JOINT, with_floating_base
from cosim.multibody.description.urdf import read_urdf
from cosim.new.plan import Actuators, Plan, plan_rig
from cosim.new.rig_text import Source, rig_text
from cosim.output.console import check_writable
from cosim.output.output_files import write_file
from cosim.rig import load_rig
from cosim.units import parse_quantity

YAML = (".yaml", ".yml")
LOWEST, HIGHEST = 0.1, 100.0  # Hz


def new_rig(
    rig: Path,
    robot: str,
    bandwidth: str = "5 Hz",
    actuator: Actuators = "auto",
    floating: bool = False,
    force: bool = False,
) -> None:
    """Write a rig for the robot file and print what it is and what to do next.

    Raises InputError for files that do not fit, InputErrors for the errors of a robot or of the rig that follows from
    it; then the rig is not written.
    """
    _check_names(rig, robot, force)
    frequency = _frequency(bandwidth)
    file = Path(robot)
    mechanism = read_urdf(file)
    if not floating and all(joint.kind == "fixed" for joint in mechanism.joints):
        floating = True
    whole = with_floating_base(mechanism) if floating else mechanism
    plan = plan_rig(whole, frequency, actuator, ROOT_JOINT if floating else "")
    plan = replace(plan, mechanism=mechanism)
    source = Source({"urdf": _from(rig, file)}, floating)
    _write(rig, rig_text(plan, source))
    for line in _report(rig, plan, source):
        print(line)


def _check_names(rig: Path, robot: str, force: bool) -> None:
    """Raises InputError for a rig that cannot be written and for arguments in the wrong order."""
    if rig.suffix.lower() not in YAML:
        if Path(robot).suffix.lower() in YAML:
            swapped = f"cosim new {shlex.quote(robot)} {shlex.quote(str(rig))}"
            raise InputError(f"the rig comes first, then the robot; use '{swapped}'", "cosim new")
        raise InputError("a rig is a YAML file; give a name that ends with .yaml", str(rig))
    if Path(robot).suffix.lower() in YAML:
        raise InputError("is YAML; name a robot file, such as a URDF", robot)
    if rig.is_file() and not force:
        raise InputError("exists already; choose another name, or overwrite it with --force", str(rig))
    check_writable(rig, "RIG")


def _frequency(text: str) -> float:
    try:
        frequency = parse_quantity(text, "Hz")
    except ValueError as error:
        raise InputError(str(error), "--bandwidth") from None
    if not LOWEST <= frequency <= HIGHEST:
        raise InputError(f"expected {LOWEST:g} to {HIGHEST:g} Hz, got '{text}'", "--bandwidth")
    return frequency


def _from(rig: Path, robot: Path) -> str:
    """The path of the robot as the rig names it: relative to its folder where they have one in common."""
    target, folder = os.path.abspath(robot), os.path.abspath(rig.parent)
    near = os.path.commonpath([target, folder]) != os.path.abspath(os.sep)
    return Path(os.path.relpath(target, folder) if near else target).as_posix()


def _write(rig: Path, text: str) -> None:
    """Write the rig and check it; a rig with errors does not replace what was there."""
    before = rig.read_bytes() if rig.is_file() else None
    write_file(rig, text.encode(), "rig")
    try:
        load_rig(rig)
    except CosimError:
        if before is None:
            rig.unlink()
        else:
            rig.write_bytes(before)
        raise


def _report(rig: Path, plan: Plan, source: Source) -> Iterator[str]:
    moving, name = len(plan.moving), shlex.quote(str(rig))
    motors = sum(joint.rotor > 0.0 for joint in plan.moving)
    parts = [f"{moving} {plural(moving, 'joint')} that {'moves' if moving == 1 else 'move'}"]
    parts += [f"{motors} {plural(motors, 'motor')}"] * bool(motors)
    held = len(plan.held) + len(plan.joints) - moving
    parts += [f"{held} held"] * bool(held)
    parts += ["base free" if source.floating else "base fixed"]
    yield f"wrote    {rig}: {plan.mechanism.name}, {', '.join(parts)}"
    replaced = [joint.name for joint in plan.joints if joint.replaced]
    if replaced:
        what = f"{plural(len(replaced), 'limit')} of {len(replaced)} {plural(len(replaced), 'joint')}"
        yield f"chosen   {what} that the robot file does not have or that cannot be; see the comments"
    yield f"next     cosim check {name}"
    yield f"         cosim run {name} --plot {shlex.quote(rig.stem)}.png"
