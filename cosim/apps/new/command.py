"""The command: read the robot, write the rig, check it, and name the next commands."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cosim.apps.new.feet import feet_of, standing_height
from cosim.apps.new.plan import BESIDE, Actuators, Plan, plan_rig
from cosim.apps.new.rig_size import check_number_of_joints, too_large
from cosim.apps.new.rig_text import ModelSource, rig_text
from cosim.core.errors import CosimError, InputError, InputErrors, RunWarning, SourceLocation, plural
from cosim.core.paths import PACKAGE, expand, locate
from cosim.mechanics.multibody.description.robot_formats import YAML, check_robot_file, format_of, read_robot
from cosim.mechanics.multibody.mechanism import with_floating_base
from cosim.output.console import busy, quantity_of
from cosim.output.output_files import check_output, write_file
from cosim.rig.reading.yaml_values import TooManyValues
from cosim.rig.rig import load_rig

ASSIGN = ":="  # of an argument of xacro, as in ROS
BANDWIDTHS = 0.1, 100.0  # Hz, at least and at most


def new_rig(
    rig: Path,
    robot: str,
    bandwidth: str = "5 Hz",
    actuator: Actuators = "auto",
    floating: bool = False,
    arguments: Sequence[str] = (),
    packages: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Write a rig for the robot file and print what it is and what to do next.

    arguments: of xacro, each `name:=value`; packages: folders in which ROS packages are searched first.

    Raises InputError for files that do not fit, InputErrors for the errors of a robot or of the rig that follows from
    it; then the rig is not written.
    """
    _check_names(rig, robot, force)
    frequency = _frequency(bandwidth)
    given = _arguments(arguments)
    _check_folders(packages)
    with busy(f"reading {Path(robot).name}"):
        plan, source = _planned(rig, robot, frequency, actuator, floating, given, packages)
        warned = _write(rig, rig_text(plan, source), robot, len(plan.moving))
    for line in _report(rig, plan, source, warned):
        print(line)


def _planned(
    rig: Path,
    robot: str,
    bandwidth: float,
    actuator: Actuators,
    floating: bool,
    arguments: Mapping[str, str],
    packages: Sequence[str],
) -> tuple[Plan, ModelSource]:
    """The figures of the rig, and the keys of its mechanism."""
    file = _locate(robot, packages)
    format = format_of(file)
    robot_file = read_robot(file, format, arguments, [Path(expand(folder)) for folder in packages])
    gravity = robot_file.gravity_or(None)
    mechanism = robot_file.under(gravity)
    if arguments and format != "urdf":
        raise InputError("xacro arguments are for a URDF or xacro file; take them out", "--arg")
    fixed = all(joint.kind == "fixed" for joint in mechanism.joints)
    grounded = format == "urdf" and not floating and not fixed
    whole = with_floating_base(mechanism) if format == "urdf" and not grounded else mechanism
    # a transmission of a URDF is no drive
    able = 0 if format == "urdf" else sum(bool(each.type) for each in robot_file.actuators)
    if actuator == "file" and not able:
        raise InputError("the robot file has no actuators that a rig can have; choose another type", "--actuator")
    options = {"hold": not floating and not fixed, "gravity": gravity, "file": robot_file}
    check_number_of_joints(mechanism, robot, actuator)
    plan = replace(plan_rig(whole, bandwidth, actuator, **options), mechanism=mechanism)
    keys: dict[str, str | Mapping[str, str] | list[str]] = {format: _from(rig, robot, file)}
    if packages:
        keys["packages"] = [_from(rig, folder, Path(folder)) for folder in packages]
    if actuator == "file":
        keys["actuators"] = "file"
    if arguments:
        keys["xacro_arguments"] = arguments
    free = floating or fixed or any(joint.kind == "free" for joint in mechanism.joints)
    feet = feet_of(mechanism, robot_file.collisions) if free else ()
    height = None
    if feet and floating:  # a file whose base is free has its place
        starts = {joint.joint.name: joint.start for joint in plan.joints}
        height = standing_height(whole, feet, starts)
    source = ModelSource(keys, floating or fixed, robot_file.gravity, 0 if actuator == "file" else able, feet, height)
    return plan, source


def _check_names(rig: Path, robot: str, force: bool) -> None:
    """Raises InputError for a rig that cannot be written and for arguments in the wrong order."""
    if rig.suffix.lower() not in YAML:
        if Path(robot).suffix.lower() in YAML:
            swapped = f"cosim new {shlex.quote(robot)} {shlex.quote(str(rig))}"
            raise InputError(f"the rig comes first, then the robot; use '{swapped}'", "cosim new")
        raise InputError("a rig is a YAML file; give a name that ends with .yaml", str(rig))
    if rig.is_file() and not force:
        raise InputError("exists already; choose another name, or overwrite it with --force", str(rig))
    check_output(rig, "RIG", tuple(YAML))


def _frequency(text: str) -> float:
    return quantity_of(text, "Hz", "--bandwidth", BANDWIDTHS, "{:g} to {:g} Hz".format(*BANDWIDTHS))


def _arguments(given: Sequence[str]) -> dict[str, str]:
    """The arguments of xacro by name."""
    for text in given:
        if not text.partition(ASSIGN)[0] or ASSIGN not in text:
            raise InputError(f"expected name:=value, got '{text}'", "--arg")
    return {text.partition(ASSIGN)[0]: text.partition(ASSIGN)[2] for text in given}


def _check_folders(packages: Sequence[str]) -> None:
    for folder in packages:
        path = Path(expand(folder))
        if not path.is_dir():
            what = f"'{folder}' is a file; name a folder" if path.exists() else f"no such folder '{folder}'"
            raise InputError(what, "--packages")


def _locate(robot: str, packages: Sequence[str]) -> Path:
    """The robot file. Raises InputError."""
    try:
        file = locate(robot, Path(), packages)
        check_robot_file(file)
    except InputError as error:
        raise InputError(error.what, robot) from None
    return file


def _from(rig: Path, written: str, target: Path) -> str:
    """A path as the rig names it: as written with `~`, `$VAR` or `package://`, else relative to the folder of the rig
    where they have a folder in common."""
    if written.startswith(("~", "$", PACKAGE)):
        return written
    absolute, folder = os.path.abspath(target), os.path.abspath(rig.parent)
    near = os.path.commonpath([absolute, folder]) != os.path.abspath(os.sep)
    return Path(os.path.relpath(absolute, folder) if near else absolute).as_posix()


def _write(rig: Path, text: str, robot: str, moving: int) -> tuple[str, ...]:
    """Write the rig and check it; a rig with errors does not replace what was there. Returns what it warns of.

    robot, moving: the robot file and its joints that move, which errors name in place of the rig that is not kept."""
    before = rig.read_bytes() if rig.is_file() else None
    write_file(rig, text.encode(), "rig")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RunWarning)  # they are part of the report
            return load_rig(rig).spec.mechanism.warnings
    except CosimError as error:
        if before is None:
            rig.unlink()
        else:
            rig.write_bytes(before)
        if isinstance(error, TooManyValues):
            raise too_large(robot, moving) from None
        if isinstance(error, InputErrors):
            raise InputErrors([_of_robot(each, rig, robot) for each in error.errors]) from None
        if isinstance(error, InputError):
            raise _of_robot(error, rig, robot) from None
        raise


def _of_robot(error: InputError, rig: Path, robot: str) -> InputError:
    """The error at the robot file where it is one of the rig, which is not kept."""
    place = error.place
    if not isinstance(place, SourceLocation) or place.file != str(rig):
        return error
    return InputError(f"no rig can be written: {f'{place.key}: ' * bool(place.key)}{error.what}", robot)


def _report(rig: Path, plan: Plan, source: ModelSource, warned: Sequence[str]) -> Iterator[str]:
    moving, name = len(plan.moving), shlex.quote(str(rig))
    motors = sum(joint.rotor > 0.0 for joint in plan.moving)
    parts = [f"{moving} {plural(moving, 'joint')} that {'moves' if moving == 1 else 'move'}"]
    parts += [f"{motors} {plural(motors, 'motor')}"] * bool(motors)
    actuated = len(plan.actuated)
    parts += [f"{actuated} actuated"] * (actuated < moving)
    held = len(plan.held) + len(plan.joints) - moving
    parts += [f"{held} held"] * bool(held)
    if "urdf" in source.keys:
        parts += ["base free" if source.floating else "base fixed"]
    yield f"wrote    {rig}: {plan.mechanism.name}, {', '.join(parts)}"
    replaced = [joint.name for joint in plan.joints if any(each.reason != BESIDE for each in joint.replaced.values())]
    if replaced:
        what = f"{plural(len(replaced), 'limit')} of {len(replaced)} {plural(len(replaced), 'joint')}"
        yield f"chosen   {what} that the robot file does not have or that cannot be; see the comments"
    for line in plan.loops:
        yield f"loops    {line}"
    if plan.mechanism.notes:
        first, *more = plan.mechanism.notes
        others = f"; {len(more)} more by 'cosim check {name}'" if more else ""
        yield f"notes    {1 + len(more)} on the robot file: {first}{others}"
    if source.actuators:
        have = f"{source.actuators} {plural(source.actuators, 'actuator')}"
        yield f"drives   the file has {have} that a rig can have; take them with --actuator file"
    for line in warned:
        yield f"warning  {line}"
    yield f"next     cosim check {name}"
    yield f"         cosim run {name} --plot {shlex.quote(rig.stem)}.png"
