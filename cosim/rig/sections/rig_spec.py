"""A checked rig file: every section as a frozen dataclass, all mistakes reported together.

Times are integer nanoseconds, positions and limits SI. Nothing is built yet.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cosim.control.limits import LIMITS, SATURATE
from cosim.core.access.binding import check_tcp
from cosim.core.access.curve import check_network
from cosim.core.errors import ErrorList, InputError, InputErrors, SourceLocation
from cosim.core.paths import irregular
from cosim.core.recordings.sample_encoding import Encoding, Numbers
from cosim.core.types import param, params
from cosim.mechanics.integrators.methods import OF_CONTACTS, OF_EXACT_CONTACTS
from cosim.mechanics.multibody.mechanism import NOWHERE, Mechanism
from cosim.output.stream.decimation import Decimation
from cosim.output.stream.messages import Format
from cosim.rig.reading.names import Line, Title
from cosim.rig.reading.schema import KeyPath, Reading, read_fields
from cosim.rig.reading.yaml_source import Override, YamlSource, YamlValue, load_yaml, override
from cosim.rig.sections.bond_graphs import SharedDriveSpec, joints_of, read_bond_graphs
from cosim.rig.sections.contacts import check_exact, check_stiffness
from cosim.rig.sections.controllers import ControllerSpec, read_controllers
from cosim.rig.sections.dofs import Dofs, dofs_of
from cosim.rig.sections.drivers import DriverSpec, check_bounds, check_real_time, read_drivers
from cosim.rig.sections.emulator import EmulatorSpec, read_emulator
from cosim.rig.sections.events import EventSpec, read_events
from cosim.rig.sections.guard import GuardSpec, read_guard
from cosim.rig.sections.joints import (
    KEYS_OF_A_JOINT,
    JointEntry,
    JointSpec,
    MultiDofJointSpec,
    read_entries,
    read_joint,
    read_multi_dof_joints,
)
from cosim.rig.sections.keep import KeepSpec, read_keep
from cosim.rig.sections.mechanism import KEYS_OF_NUMBERS, MechanismSpec, ground_alone, read_mechanism
from cosim.rig.sections.parts import CouplingsSpec, FmuSpec, PartSpec, read_couplings, read_parts
from cosim.rig.sections.robot_file_joints import settings_with_file, with_doubts
from cosim.rig.sections.scenario import ScenarioContext, ScenarioSpec, read_scenarios
from cosim.rig.sections.schedule import ScheduleSpec, read_schedule
from cosim.rig.sections.supplies import read_supplies
from cosim.rig.sections.tick_size import check_size, size_of
from cosim.rig.sections.tuning import TuningKeys

MEGABYTE = 1e6
# names that joints cannot have
RESERVED = {"all": "the settings of all joints", "energy": "the energies of the rig"}
_OF_PARTS = "give it to the parts"
# sections by names that a robot file has -> keys of their elements
_OF_NAMES: Mapping[KeyPath, tuple[str, ...]] = {
    ("joints",): KEYS_OF_A_JOINT,
    ("mechanism", "numbers"): KEYS_OF_NUMBERS,
}
# keys that act on a mechanism, and what to do instead of adding one
_OF_A_MECHANISM: Mapping[KeyPath, str] = {
    ("joints",): "take it out",
    ("bond_graphs",): "take it out",
    ("supplies",): "take it out",
    ("drivers",): "take it out",
    ("emulator",): "take it out",
    ("controllers",): "take it out, or write the controller as a part",
    ("events",): "take it out",
    ("guard",): "take it out; a bond has `residual_limit`",
    ("tuning",): "take it out",
    ("schedule", "integrator"): _OF_PARTS,
    ("schedule", "substeps"): f"{_OF_PARTS}, as their `step`",
    ("schedule", "tolerance"): "take it out",
    ("schedule", "seed"): "take it out",
    ("schedule", "order"): "take it out",
    ("schedule", "blend"): "take it out",
    ("recording", "frame_rate"): "take it out",
}


@params
class TelemetrySpec:
    publish: Annotated[str, check_tcp] | None = param(default=None, doc="ZeroMQ endpoint")
    rate: float = param(unit="Hz", above=0, default=50.0)
    signals: tuple[str, ...] = param(default=(), doc="only these, such as elbow/position or */effort")
    decimation: Decimation = param(default="last", doc="how a sample stands for the ticks since the one before")
    format: Format = param(default="json", doc="of the messages")
    network: bool = param(default=False, doc="the endpoint may be in the network")
    key: str | None = param(default=None, doc="file of the keys that encrypt it")
    control: Annotated[str, check_tcp] | None = param(default=None, doc="ZeroMQ endpoint of the control socket")
    control_timeout: float = param(unit="s", above=0, default=2.0, doc="of silence after which control is lost")
    control_lost: Literal["continue", "rest"] = param(default="continue", doc="what the run does then")


@params
class RecordingSpec:
    encoding: Encoding = param(default="protobuf", doc="of the samples")
    numbers: Numbers = param(default="float64", doc="of the samples in Protobuf")
    split_size: float | None = param(unit="B", min=MEGABYTE, default=None, doc="size after which another file follows")
    split_time: float | None = param(unit="s", min=1, default=None, doc="time after which another file follows")
    frame_rate: float | None = param(unit="Hz", above=0, default=50.0, doc="of the mechanism in 3D for Foxglove")
    bus: bool = param(default=False, doc="record the traffic of real drivers too")


@params
class _RigFile:
    mechanism: dict | None = param(default=None)
    name: Title | None = param(default=None)
    description: Line = param(default="")
    joints: dict | None = param(default=None)
    bond_graphs: dict | None = param(default=None)
    supplies: dict | None = param(default=None)
    drivers: list | None = param(default=None)
    emulator: dict | None = param(default=None)
    scenario: dict | None = param(default=None)
    controllers: list | None = param(default=None)
    parts: list | None = param(default=None)
    couplings: dict | None = param(default=None)
    events: list | None = param(default=None)
    guard: dict | None = param(default=None)
    schedule: dict | None = param(default=None)
    telemetry: TelemetrySpec = param(default=TelemetrySpec())
    recording: RecordingSpec = param(default=RecordingSpec())
    tuning: TuningKeys = param(default=TuningKeys())


@dataclass(frozen=True)
class RigSpec:
    """A rig file without errors. joints: every dof in model order; multi_dof_joints: joints of several dofs by name."""

    name: str
    path: Path
    description: str
    mechanism: MechanismSpec
    joints: dict[str, JointSpec]
    multi_dof_joints: dict[str, MultiDofJointSpec]
    bond_graphs: tuple[SharedDriveSpec, ...]
    owners: dict[str, str]  # dof -> its joint
    events: tuple[EventSpec, ...]
    drivers: tuple[DriverSpec, ...]
    emulator: EmulatorSpec
    scenarios: tuple[ScenarioSpec, ...]
    scenario_context: ScenarioContext
    controllers: tuple[ControllerSpec, ...]
    parts: tuple[PartSpec | FmuSpec, ...]
    couplings: CouplingsSpec
    guard: GuardSpec
    schedule: ScheduleSpec
    telemetry: TelemetrySpec
    recording: RecordingSpec
    keep: KeepSpec
    tuning: TuningKeys
    source: YamlSource


def read_rig(path: str | Path | YamlSource, overrides: Iterable[Override] = ()) -> RigSpec:
    """The rig file at `path`, or one that was read already, with its mechanism, after overrides like
    `controllers.arm.kp=200`, or pairs of one and the option of the command line that messages name.

    Raises InputErrors with all errors in the order of the lines; InputError if the file is not YAML.
    """
    source = path if isinstance(path, YamlSource) else load_yaml(path)
    errors = ErrorList()
    try:
        for text in overrides:
            try:
                given = (text,) if isinstance(text, str) else text
                source = override(source, *given, named=_OF_NAMES)
            except InputError as error:
                errors.append(error)
        rig = _read(source, Reading(source.place, errors, Path(source.file).parent))
    except InputErrors:  # reading ended early
        raise InputErrors(_in_order(errors, source.file)) from None
    if errors:
        raise InputErrors(_in_order(errors, source.file))
    return rig


@dataclass(frozen=True)
class PlantSpec:
    """The sections `mechanism`, `joints` and `bond_graphs` of a rig file, as in `RigSpec`."""

    path: Path
    mechanism: MechanismSpec
    joints: dict[str, JointSpec]
    bond_graphs: tuple[SharedDriveSpec, ...]
    owners: dict[str, str]
    source: YamlSource


def read_rig_plant(path: Path) -> PlantSpec:
    """The sections `mechanism`, `joints` and `bond_graphs` of the rig at `path` alone, also of a rig in which no joint
    moves on its own.

    Raises InputErrors with all errors in these sections; InputError if the file is not YAML.
    """
    source, errors = load_yaml(path), ErrorList()
    found = None
    try:
        reading = Reading(source.place, errors, Path(source.file).parent)
        top: dict[str, Any] = read_fields(_RigFile, source.data, (), reading, besides=("keep",))
        mechanism = _mechanism(source.data, top, top.get("name") or path.stem, reading)
        if mechanism is not None:
            dofs = dofs_of(mechanism.description)
            settings = settings_with_file(top.get("joints") or {}, mechanism, dofs)
            graphs = reading.mapping(top.get("bond_graphs"), ("bond_graphs",))
            shared = {dof for joints in joints_of(graphs).values() for dof in joints.values()}
            entries = read_entries(settings, dofs.single, dofs.multi_dof_joints, dofs.by_name, reading, shared)
            specs = {name: read_joint(name, entry, dofs.single, False) for name, entry in entries.items()}
            taken = dict.fromkeys(specs, "a joint")
            drives = read_bond_graphs(graphs, dofs.single, entries, (), taken, reading)
            supplies = reading.mapping(top.get("supplies"), ("supplies",))
            supplied, specs = read_supplies(supplies, specs, entries, (), taken, reading)
            found = PlantSpec(path, mechanism, specs, (*drives, *supplied), dict(dofs.owners), source)
    except InputErrors:  # reading ended early
        raise InputErrors(_in_order(errors, source.file)) from None
    if errors or found is None:
        raise InputErrors(_in_order(errors, source.file))
    return found


def _in_order(errors: list[InputError], file: str) -> list[InputError]:
    """By line, then errors of other files; equal errors, as from a wrong default for all joints, once."""

    def key(error: InputError) -> tuple[bool, int]:
        place = error.place
        if isinstance(place, SourceLocation) and place.file == file:
            return False, place.line or 0
        return True, 0

    return sorted({str(error): error for error in errors}.values(), key=key)


def _check_joint_names(mechanism: Mechanism, dofs: Dofs, reading: Reading) -> None:
    """Record names that joints cannot have, at the joint in the robot file or in the rig."""
    joints = {joint.name: joint for joint in (*mechanism.joints, *(loop.joint for loop in mechanism.loops))}

    def fail(name: str, what: str) -> None:
        known = name in joints and joints[name].place is not NOWHERE
        place = joints[name].place if known else reading.place(("mechanism",))
        reading.errors.append(InputError(f"{what}; rename the joint", place))

    for name in [name for name in RESERVED if dofs.of(name)]:
        fail(name, f"the joint name '{name}' is reserved for {RESERVED[name]}")
    for name in dofs.clashes:
        fail(name, f"'{name}' is the name of a joint and of a dof of another one")


def _read(source: YamlSource, reading: Reading) -> RigSpec:
    """The spec; after errors recorded in `reading` parts of it are None and it must not be used."""
    path = Path(source.file)
    top: dict[str, Any] = read_fields(_RigFile, source.data, (), reading, besides=("keep",))
    name = top.get("name") or path.stem
    mechanism: Any = _mechanism(source.data, top, name, reading)
    dofs = dofs_of(mechanism.description) if mechanism else None
    joints, multi_dof, by_name = (dofs.single, dofs.multi_dof_joints, dofs.by_name) if dofs else (None, {}, frozenset())
    if dofs:
        _check_joint_names(mechanism.description, dofs, reading)
    if dofs and not dofs.owners and "mechanism" in source.data:
        reading.fail(("mechanism",), "no joint moves on its own; give it a joint that is not fixed")
    described = mechanism.description.contacts if mechanism else ()
    integrator = "" if not described else OF_EXACT_CONTACTS if any(each.exact for each in described) else OF_CONTACTS
    schedule = read_schedule(top.get("schedule"), reading, integrator)
    if mechanism and mechanism.description.contacts:
        step = 1e-9 * schedule.step_ns / schedule.substeps
        check_stiffness(mechanism.description, source.data["mechanism"], step, reading)
        check_exact(mechanism.description, reading)
    size = size_of(mechanism, len(dofs.owners)) if dofs else None
    if size and not check_size(size, schedule, reading):
        raise InputErrors(reading.errors)  # each further section would take its time
    settings = settings_with_file(top.get("joints") or {}, mechanism, dofs)
    graphs = reading.mapping(top.get("bond_graphs"), ("bond_graphs",))
    shared = {dof for dofs in joints_of(graphs).values() for dof in dofs.values()}
    entries = read_entries(settings, joints, multi_dof, by_name, reading, shared)
    stops = sum(entry.data.get("stops") is not None for entry in entries.values())
    switches = stops + len(top.get("events") or [])
    if size and switches and not check_size(replace(size, switches=switches), schedule, reading):
        raise InputErrors(reading.errors)
    prescribed = {name for name, entry in entries.items() if entry.data.get("prescribed") is not None}
    owners = dofs.owners if dofs else {}
    prescribed |= _of_prescribed_wholes(settings, owners, multi_dof, entries, reading)
    items = top.get("controllers") or []
    controllers = read_controllers(items, joints, by_name, prescribed, schedule.step_ns, reading, schedule.rate)
    drivers = read_drivers(top.get("drivers") or [], joints, multi_dof, prescribed, reading)
    commanded = {joint for controller in controllers for joint in controller.joints}
    commanded |= {joint for driver in drivers for joint in driver.joints}
    specs = {name: read_joint(name, entry, joints, name in commanded - shared) for name, entry in entries.items()}
    check_bounds(drivers, specs, reading)
    if top.get("drivers"):
        check_real_time(top.get("schedule"), schedule.pacing, reading)
    guard = read_guard(top.get("guard"), schedule.step_ns, reading)
    _check_guard(guard, specs, entries, commanded, reading)
    taken = dict.fromkeys(specs, "a joint") | {c.name: "a controller" for c in controllers if c} | RESERVED
    real = {name for driver in drivers for name in driver.wiring}
    shared_drives = read_bond_graphs(graphs, joints, entries, real, taken, reading)
    taken |= dict.fromkeys(graphs, "a bond graph")
    supplies = reading.mapping(top.get("supplies"), ("supplies",))
    supplied, specs = read_supplies(supplies, specs, entries, real, taken, reading)
    parts = read_parts(top.get("parts"), taken | dict.fromkeys(supplies, "a supply"), reading)
    kinds = {name: joint.kind for name, joint in (joints or {}).items() if name in specs}
    may_fail = _scenario_context(drivers, kinds, prescribed, controllers, schedule)
    return RigSpec(
        name=name,
        path=path,
        description=top.get("description", ""),
        mechanism=with_doubts(mechanism, specs, settings) if mechanism else mechanism,
        joints=specs,
        multi_dof_joints=read_multi_dof_joints(settings, multi_dof, reading),
        bond_graphs=(*shared_drives, *supplied),
        owners=dict(owners),
        events=read_events(top.get("events") or [], dofs, mechanism, reading),
        drivers=drivers,
        emulator=read_emulator(top.get("emulator") or {}, drivers, joints, multi_dof, prescribed, reading),
        scenarios=read_scenarios(top.get("scenario"), may_fail, reading),
        scenario_context=may_fail,
        controllers=tuple(controllers),
        parts=parts,
        couplings=read_couplings(top.get("couplings"), parts, reading),
        guard=guard,
        schedule=schedule,
        telemetry=_checked_telemetry(top.get("telemetry", TelemetrySpec()), reading),
        recording=top.get("recording", RecordingSpec()),
        keep=read_keep(source.data.get("keep") if isinstance(source.data, dict) else None, reading),
        tuning=top.get("tuning") or TuningKeys(),
        source=source,
    )


def _of_prescribed_wholes(
    settings: Mapping[str, YamlValue],
    owners: Mapping[str, str],
    multi_dof: Container[str],
    entries: Mapping[str, JointEntry],
    reading: Reading,
) -> set[str]:
    """The dofs of joints of several dofs that are prescribed as a whole. Records settings that these cannot have."""
    wholes = {name for name, own in settings.items() if isinstance(own, dict) and own.get("prescribed") is not None}
    found = {dof for dof, owner in owners.items() if owner in wholes and owner in multi_dof}
    for dof in sorted(found):
        for key in ("actuator", "prescribed"):
            if entries[dof].data.get(key) is not None:
                reading.fail(("joints", dof, key), f"joint '{owners[dof]}' is prescribed as a whole; take out '{key}'")
    return found


def _scenario_context(
    drivers: tuple[DriverSpec, ...],
    kinds: Mapping[str, str],
    prescribed: Container[str],
    controllers: Iterable[ControllerSpec | None],
    schedule: ScheduleSpec,
) -> ScenarioContext:
    """kinds: of the joints that move on their own."""
    real = {name for driver in drivers for name in driver.wiring}
    return ScenarioContext(
        drivers=tuple(driver.name for driver in drivers),
        drives={name: kind for name, kind in kinds.items() if name in real},
        simulated={name: kind for name, kind in kinds.items() if name not in real and name not in prescribed},
        controllers=tuple(controller.name for controller in controllers if controller),
        duration=float("inf") if schedule.duration_ns is None else schedule.duration_ns * 1e-9,  # None after an error
    )


def _mechanism(data: Mapping[str, YamlValue], top: Mapping[str, Any], name: str, reading: Reading) -> Any:
    """The mechanism, without joints for a rig of parts only; None after an error."""
    if "mechanism" in data:
        return read_mechanism(top["mechanism"] or {}, name, reading) if "mechanism" in top else None
    if not data.get("parts"):
        nothing = " and `parts` is empty; add one of them" if "parts" in data else ""
        return reading.fail((), f"missing key 'mechanism'{nothing}")
    check_parts_only(data, reading)
    return ground_alone(name, reading)


def _checked_telemetry(telemetry: TelemetrySpec, reading: Reading) -> TelemetrySpec:
    """With the path of its key file; errors are recorded."""
    if telemetry is None:
        return TelemetrySpec()
    for name in ("publish", "control"):
        if (endpoint := getattr(telemetry, name)) is not None:
            try:
                check_network(endpoint, telemetry.network, telemetry.key, "telemetry")
            except ValueError as error:
                reading.fail(("telemetry", name), str(error))
    file = None if telemetry.key is None else reading.file(telemetry.key, ("telemetry", "key"))
    if file is not None and not file.is_file():
        kind = irregular(file)
        what = f"{file} is {kind}, no key file" if kind else f"there is no file {file}"
        reading.fail(("telemetry", "key"), f"{what}; write one with `cosim key`")
    return replace(telemetry, key=None if file is None else str(file))


def _check_guard(
    guard: GuardSpec,
    joints: Mapping[str, JointSpec],
    entries: Mapping[str, JointEntry],
    commanded: Iterable[str],
    reading: Reading,
) -> None:
    """Derating and soft start need an effort limit that saturates, limits of residuals the simulated twins."""
    commanded = set(commanded)
    for name, joint in joints.items():
        actions = guard.actions | joint.actions
        for row in (row for row in LIMITS if row.needs_twin and guard.shadow is None):
            if joint.limits[row.key] < float("inf"):
                what = f"compares with the simulated twin of joint '{name}', and the rig has none; add --shadow"
                entries[name].reading.fail(("joints", name, "limits", row.key), f"{what}, or guard.shadow: {{}}")
        lack = ""
        if joint.limits["effort"] == float("inf"):
            lack = f"joint '{name}' has none; give joints.{name}.limits.effort"
        elif actions["effort"] != SATURATE:
            lack = f"joint '{name}' has the action {actions['effort']} for it; use saturate"
        if not lack:
            continue
        for row in LIMITS:
            if row.derating and joint.limits[row.key] < float("inf") and actions[row.key] == SATURATE:
                at: KeyPath = ("joints", name, "limits", row.key)
                entries[name].reading.fail(at, f"a {row.key} limit that saturates derates the effort limit, and {lack}")
        if guard.soft_start > 0.0 and name in commanded:
            reading.fail(("guard", "soft_start"), f"a soft start ramps the effort limit up, and {lack}")


def check_parts_only(data: Mapping[str, YamlValue], reading: Reading) -> None:
    """Record the keys of a rig without a mechanism that act on one."""
    for path, fix in _OF_A_MECHANISM.items():
        section: YamlValue = data
        for key in path:
            section = section.get(key) if isinstance(section, dict) else None
        if section is not None:
            reading.fail(path, f"acts on a mechanism, and this rig has none; {fix}, or add `mechanism`")
