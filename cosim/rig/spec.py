"""What a rig file says, checked: every section as a frozen dataclass, every mistake reported at once.

Times are integer nanoseconds from here on, positions and limits SI. Nothing is built yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosim.errors import InputError, InputErrors, Place, did_you_mean
from cosim.multibody.description import Mechanism
from cosim.multibody.graph import depth_first
from cosim.multibody.inline import read_bodies
from cosim.multibody.urdf import read_urdf
from cosim.rig.controllers import ControllerSpec, read_controllers
from cosim.rig.joints import JointSpec, read_entries, read_joint
from cosim.rig.plugins import Reading
from cosim.rig.schedule import ScheduleSpec, read_schedule
from cosim.rig.schema import read_fields
from cosim.rig.source import Source, load_yaml, override
from cosim.types import param, params

# names that joints cannot have
RESERVED = {"all": "the settings of all joints", "energy": "the energies of the rig"}


@params
class _MechanismFile:
    urdf: str | None = param(default=None)
    bodies: list | None = param(default=None)
    gravity: tuple[float, float, float] = param(unit="m/s^2", default=(0.0, 0.0, -9.81))


@params
class TelemetrySpec:
    publish: str | None = param(default=None, doc="ZeroMQ endpoint")
    rate: float = param(unit="Hz", above=0, default=50.0)


@params
class _RigFile:
    mechanism: dict = param()
    name: str | None = param(default=None)
    description: str = param(default="")
    joints: dict | None = param(default=None)
    controllers: list | None = param(default=None)
    schedule: dict | None = param(default=None)
    telemetry: TelemetrySpec = param(default=TelemetrySpec())


@dataclass(frozen=True)
class MechanismSpec:
    description: Mechanism
    gravity: tuple[float, float, float]  # m/s^2
    urdf: Path | None  # None: given inline


@dataclass(frozen=True)
class RigSpec:
    """A rig file without mistakes; `joints` holds, in model order, every joint that moves on its own."""

    name: str
    path: Path
    description: str
    mechanism: MechanismSpec
    joints: dict[str, JointSpec]
    controllers: tuple[ControllerSpec, ...]
    schedule: ScheduleSpec
    telemetry: TelemetrySpec
    source: Source


def read_rig(path: str | Path, overrides: Iterable[str] = ()) -> RigSpec:
    """The rig file at `path` with its mechanism, after overrides like `controllers.arm.kp=200`.

    Raises InputErrors with every mistake, in the order of the lines; InputError when the file is no YAML.
    """
    source = load_yaml(path)
    errors: list[InputError] = []
    for text in overrides:
        try:
            source = override(source, text)
        except InputError as error:
            errors.append(error)
    rig = _read(source, Reading(source.place, errors, Path(path).parent))
    if errors:
        raise InputErrors(_in_order(errors, source.file))
    return rig


def _in_order(errors: list[InputError], file: str) -> list[InputError]:
    """By line, then those of other files; a default for all joints that is wrong is one mistake."""

    def key(error: InputError) -> tuple[bool, int]:
        place = error.place
        if isinstance(place, Place) and place.file == file:
            return False, place.line or 0
        return True, 0

    return sorted({str(error): error for error in errors}.values(), key=key)


def _read(source: Source, reading: Reading) -> RigSpec:
    """The spec; with mistakes noted in `reading` parts of it are None and it is not to be used."""
    path = Path(source.file)
    top: dict[str, Any] = read_fields(_RigFile, source.data, reading.place, (), reading.errors)
    name = top.get("name") or path.stem
    mechanism: Any = _mechanism(top["mechanism"], name, reading) if "mechanism" in top else None
    joints = {joint.name: joint for joint in depth_first(mechanism.description)} if mechanism else None
    for name in [name for name in RESERVED if joints and name in joints]:
        what = f"joint '{name}': the name is taken, it stands for {RESERVED[name]}; rename the joint"
        reading.fail(("mechanism",), what)
    schedule = read_schedule(top.get("schedule"), reading)
    entries = read_entries(top.get("joints") or {}, joints, reading)
    prescribed = {name for name, entry in entries.items() if entry.data.get("prescribed") is not None}
    items = top.get("controllers") or []
    controllers = read_controllers(items, joints, prescribed, schedule.step_ns, reading)
    commanded = {joint for controller in controllers for joint in controller.joints}
    specs = {name: read_joint(name, entry, joints, name in commanded) for name, entry in entries.items()}
    return RigSpec(
        name=name,
        path=path,
        description=top.get("description", ""),
        mechanism=mechanism,
        joints=specs,
        controllers=tuple(controllers),
        schedule=schedule,
        telemetry=top.get("telemetry", TelemetrySpec()),
        source=source,
    )


def _mechanism(data: dict[str, Any], name: str, reading: Reading) -> MechanismSpec | None:
    at = ("mechanism",)
    section = read_fields(_MechanismFile, data, reading.place, at, reading.errors)
    given = [key for key in ("urdf", "bodies") if data.get(key) is not None]
    if len(given) != 1:
        both = "both 'urdf' and 'bodies' are given; keep one of them"
        return reading.fail(at, both if given else "missing key 'urdf' or 'bodies'")
    if given[0] not in section:
        return None
    urdf = None if section["urdf"] is None else reading.folder / section["urdf"]
    if urdf is not None and not urdf.is_file():
        near = sorted(file.name for file in urdf.parent.glob("*.urdf"))
        return reading.fail((*at, "urdf"), f"no such file '{section['urdf']}'{did_you_mean(urdf.name, near)}")
    try:
        description = read_urdf(urdf) if urdf else read_bodies(section["bodies"], reading.place, name)
    except InputErrors as many:
        reading.errors.extend(many.errors)
        return None
    except InputError as error:
        reading.errors.append(error)
        return None
    return MechanismSpec(description, section.get("gravity", ()), urdf)
