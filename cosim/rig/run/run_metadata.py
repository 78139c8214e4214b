"""What a run keeps of its rig, as plain data: names, roles, units and settings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from cosim.core.errors import InputError, shortened
from cosim.execution.timing import deadlines
from cosim.mechanics.formulations import SEPARATE_BODIES
from cosim.mechanics.multibody.contact.contact_solver import TOLERANCE
from cosim.simulation.plant.recorded_reactions import OF_A_CONSTRAINT

if TYPE_CHECKING:
    from cosim.rig.wiring.wired_rig import WiredRig

Role = Literal["actuated", "passive", "prescribed", "real"]


@dataclass(frozen=True)
class ConstraintMetadata:
    """The names of what is recorded of a constraint. rows: of its reactions; drifts: which of `violation` and `slip` it
    has; sizes: full names of the signals that say how large its reaction is, none in recordings of former versions;
    allowed: the violation [m or rad] that axes which are off may leave, see `alignment`."""

    rows: tuple[str, ...]
    drifts: tuple[str, ...]
    sizes: tuple[str, ...] = ()
    allowed: float = 0.0


@dataclass(frozen=True)
class SupplyMetadata:
    """A supply of drives. source: its type; voltage: of the link without load [V]; capacitance [F]; joints: on it;
    threshold, full: voltages [V] from which its chopper is on and always on, None without one; largest, lowest: of the
    link [V], None where they are not given; capacity: of a battery [C]."""

    source: str
    voltage: float
    capacitance: float
    joints: tuple[str, ...]
    threshold: float | None
    full: float | None
    largest: float | None
    lowest: float | None
    capacity: float | None


@dataclass(frozen=True)
class RunMetadata:
    """What a run keeps of its rig, so that its signals can be read without it.

    units: signal -> unit, of every recorded signal in their order; roles: by joint; limits: joint -> bounds of the
    guard by key, finite ones; parameters: as set for the run; integrator: of the plant, None in a rig of parts only, as
    are substeps: per tick, or `auto`; engine: part -> where it ran; redundant: rows; immobile: why nothing can move, or
    None.
    """

    name: str
    description: str
    path: str
    units: dict[str, str]
    roles: dict[str, Role]
    limits: dict[str, dict[str, float]]
    parameters: dict[str, float | list[float]]
    constraints: dict[str, ConstraintMetadata]
    redundant: tuple[str, ...]
    immobile: str | None
    hardware: bool
    step_ns: int
    integrator: str | None
    substeps: int | str | None
    engine: dict[str, str]
    # recordings of former versions have none of these
    formulation: str = SEPARATE_BODIES  # of the equations of motion
    full_deflection: dict[str, float] = field(default_factory=dict)  # of modes, see `Model.full_deflection`
    bonds: tuple[str, ...] = ()  # of parts
    drawing: str = ""  # of the mechanism, see `write_drawing`; only where it is for other programs
    reactions: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of joints that record them: their sizes
    supplies: dict[str, SupplyMetadata] = field(default_factory=dict)
    temperatures: dict[str, float | None] = field(default_factory=dict)  # rises in drives -> their limits [K]
    contact_tolerance: float = TOLERANCE  # of the solver of the contacts [m/s]

    @property
    def joints(self) -> tuple[str, ...]:
        return tuple(self.roles)


def check_names(metadata: RunMetadata, place: str) -> None:
    """Raises InputError for a name that is not one line of printable characters: it would forge lines of tables."""
    named = {"rig": [metadata.name], "joint": metadata.roles, "parameter": metadata.parameters}
    named |= {"signal": metadata.units, "constraint": metadata.constraints, "unit": metadata.units.values()}
    for kind, names in named.items():
        for name in names:
            if not name.isprintable():
                what = (
                    f"the name of a {kind} must be one line of printable characters, is '{shortened(name)}'; rename it"
                )
                raise InputError(what, place)


def run_metadata_of(rig: WiredRig) -> RunMetadata:
    """With the parameters as they are now. Raises InputError for a name that does not print."""
    metadata = rig.cached.get("metadata", lambda: _run_metadata_of(rig))
    check_names(metadata, metadata.path)
    if not rig.built:
        return metadata
    from cosim.rig.parameter_table import table_of

    return replace(metadata, parameters=table_of(rig).values())


def _run_metadata_of(rig: WiredRig) -> RunMetadata:
    from cosim.rig.parameter_table import table_of
    from cosim.rig.sections.schedule import AUTO

    spec, schedule, model = rig.spec, rig.spec.schedule, rig.plant.model
    signals = rig.tick_model.signals
    reactions = dict(signals.reactions)
    constraints = {}
    for name, allowed in model.equations.constraints.allowed.items():
        drifts = tuple(what for what in OF_A_CONSTRAINT if f"{name}/{what}" in signals.names)
        own = reactions.pop(name)
        constraints[name] = ConstraintMetadata(own.rows, drifts, own.sizes, allowed)
    return RunMetadata(
        name=spec.name,
        description=spec.description,
        path=str(spec.path),
        units=dict(channels_of(rig)),
        roles={name: _role(rig, name) for name in rig.joints},
        limits={
            name: {key: bound for key, bound in joint.limits.items() if abs(bound) < float("inf")}
            for name, joint in spec.joints.items()
        },
        parameters=table_of(rig).values(),
        constraints=constraints,
        redundant=tuple(model.constraint_rows[row] for row in rig.plant.start.redundant),
        immobile=rig.plant.immobile,
        hardware=rig.hardware,
        step_ns=schedule.step_ns,
        integrator=schedule.integrator if rig.joints else None,
        substeps=(AUTO if schedule.adaptive else schedule.substeps) if rig.joints else None,
        engine=_engine(rig),
        bonds=() if rig.tick_model.coupling is None else rig.tick_model.coupling.bond_names,
        formulation=spec.mechanism.formulation,
        full_deflection=rig.plant.full_model.full_deflection,
        reactions={joint: names.sizes for joint, names in reactions.items()},
        supplies=_supplies(rig),
        temperatures=_temperatures(rig),
        contact_tolerance=rig.plant.contact_bounds.tolerance,
    )


def _supplies(rig: WiredRig) -> dict[str, SupplyMetadata]:
    from cosim.plugins.actuators._supplied_drives import SuppliedDrives

    found = {}
    for drive in rig.spec.bond_graphs:
        if not isinstance(given := drive.plugin.params, SuppliedDrives):
            continue
        link, chopper = given.link, given.link.chopper
        found[drive.name] = SupplyMetadata(
            link.source.type,
            link.source.params.nominal,
            link.capacitance,
            tuple(drive.joints.values()),
            None if chopper is None else chopper.threshold,
            None if chopper is None else chopper.full,
            link.largest_voltage,
            link.lowest_voltage,
            getattr(link.source.params, "capacity", None),
        )
    return found


def _temperatures(rig: WiredRig) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name, drive in rig.plant.drives.items():
        for what, limit in getattr(drive, "temperatures", {}).items():
            found[what.replace(".", "/", 1) if name in rig.plant.shared else f"{name}/{what}"] = limit
    return {name: limit for name, limit in found.items() if name in rig.tick_model.signals.names}


def _role(rig: WiredRig, name: str) -> Role:
    if name in rig.plant.prescribed_dofs:
        return "prescribed"
    if name in rig.plant.real:
        return "real"
    return "actuated" if name in rig.plant.actuated else "passive"


def _engine(rig: WiredRig) -> dict[str, str]:
    """Which parts run compiled, and which in Python and why."""
    tick_model = rig.tick_model
    if rig.interpret:
        return {"everything": "Python, as requested"}
    where = {"plant": "compiled"} if rig.joints else {}
    for loop in tick_model.loops:
        why = tick_model.untraceable.get(loop.name)
        where[f"controller {loop.name}"] = f"Python: {why}" if why else "compiled"
    if tick_model.coupling is not None:
        in_python = tick_model.coupling.in_python
        where |= {
            f"part {name}": f"Python: {in_python[name]}" if name in in_python else "compiled"
            for name in tick_model.coupling.parts
        }
    where["loop"] = f"Python: {rig.why_python_loop}" if rig.why_python_loop else "compiled"
    if rig.why_python_loop:
        return where
    if rig.spec.guard.estop is not None:
        where["emergency stop"] = "Python: its inputs are read in Python"
    called = rig.called
    for driver in rig.spec.drivers:
        why = called.get(driver.name)
        where[f"driver {driver.name}"] = f"Python: {why}" if why else "compiled"
    return where


def channels_of(rig: WiredRig) -> tuple[tuple[str, str], ...]:
    """(signal, unit) of every column that a run of the rig records."""
    timing = {} if rig.spec.schedule.pacing is None else deadlines.signals_of(rig.tasks)
    declared = {**rig.tick_model.signals.declared, **timing}
    return tuple((name, signal.unit) for name, signal in declared.items())
