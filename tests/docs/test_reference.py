"""The reference pages agree with the schema, the driver families and the summary of a run."""

import dataclasses
import importlib
import math
import pkgutil
import re
from pathlib import Path
from types import SimpleNamespace
from typing import get_args, get_type_hints

import numpy as np
import pytest
import yaml

from cosim import load_rig
from cosim.apps.tuning.misfit import MISFIT
from cosim.apps.tuning.objective import MARGINS
from cosim.apps.tuning.optimisers import known_optimisers
from cosim.apps.tuning.plants import GROUPS
from cosim.control.bumpless_start import BumplessStart
from cosim.control.control_loop import ControlLoop
from cosim.control.controlled_stop import SETTLING
from cosim.control.guard import LARGEST_FEEDBACK_EFFORT
from cosim.control.limits import DERATING, LIMITS
from cosim.core.access.binding import STREAM_EXAMPLE
from cosim.core.types import COMMAND, joint_signals, signals_of
from cosim.core.units import SPELLINGS, UNITS
from cosim.execution.hardware.emulation import fault_injection
from cosim.execution.scheduler import ALLOWED, SchedulerState
from cosim.execution.timing import deadlines, percentiles
from cosim.mechanics.bondgraph.power_account import ELECTRICAL, LOSSES, RETURNED
from cosim.output.events import PAUSE
from cosim.output.stream.messages import SAMPLE_FIELDS, event_of
from cosim.output.stream.reading import Schema
from cosim.plugins.drivers.common import wiring
from cosim.plugins.drivers.common.feedforward_field import FeedforwardField
from cosim.plugins.drivers.common.motor import FAULT_CAUSES
from cosim.plugins.drivers.dynamixel import SerialSettings
from cosim.rig import emulate
from cosim.rig.reading import names as part_names
from cosim.rig.reading import schema, yaml_source, yaml_values
from cosim.rig.run.contact_figures import ContactSolverSummary, ContactSummary
from cosim.rig.run.drive_figures import LostStepsSummary, TemperatureSummary
from cosim.rig.run.link_voltages import SupplySummary
from cosim.rig.run.proven_units import UnitsSummary
from cosim.rig.run.recorded_run import StreamSummary
from cosim.rig.run.run_metadata import channels_of
from cosim.rig.run.summary import (
    DriveBondSummary,
    LoadBondSummary,
    PartBondSummary,
    ShadowSummary,
    TorsionSpringSummary,
)
from cosim.rig.sections import constraints, guard, joint_definition, schedule, tick_size
from cosim.rig.sections.guard import WATCHDOG
from cosim.rig.wiring.control_loops import HoldTrajectory
from cosim.rig.wiring.drivers import bus_report
from cosim.simulation.plant.recorded_contacts import OF_A_CONTACT, OF_THE_SOLVER
from cosim.simulation.tick.metrics import METRICS
from cosim.simulation.tick.tick_model import ORDER
from tests.controllers.test_contract import context, loaded
from tests.docs.documents import ROOT, TABLES, TEXT, expected_cells, names

HEADER = ["key", "type", "unit", "default", "bounds", "meaning"]


def section(entry: str | list[str]) -> tuple[type, set[str]]:
    """(dataclass, keys that are read before it) of an entry of the file of sections."""
    name, *keys = [entry] if isinstance(entry, str) else entry
    module, _, cls = name.rpartition(".")
    return getattr(importlib.import_module(f"cosim.{module}"), cls), set(keys)


_FILE = Path(__file__).with_name("sections.yaml")
SECTIONS = {heading: section(entry) for heading, entry in yaml.safe_load(_FILE.read_text(encoding="utf-8")).items()}
PACKAGES = {
    "Actuator": "cosim.plugins.actuators",
    "Trajectory": "cosim.plugins.trajectories",
    "Controller": "cosim.plugins.controllers",
    "Driver": "cosim.plugins.drivers",
    "Component": "cosim.mechanics.bondgraph.components",
}


def plugins() -> dict[str, type]:
    """Heading -> Params of every module in the folders of the plug-ins."""
    found = {}
    for word, package in PACKAGES.items():
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            cls = getattr(importlib.import_module(f"{package}.{module.name}"), "Params", None)
            if cls is not None:
                found[f"{word} `{module.name}`"] = cls
    return found


def families() -> dict[str, type]:
    """Heading -> JointParams of every family of drivers."""
    found = [heading.split()[1] for heading in plugins() if heading.startswith("Driver ")]
    return {
        f"Joints of {name}": importlib.import_module(f"cosim.plugins.drivers.{name.strip('`')}").JointParams
        for name in found
    }


def keys(cls: type) -> dict[str, dataclasses.Field]:
    """The fields that a table shows: of a family's joints without the wiring that all share."""
    shared = dataclasses.fields(wiring.JointParams) if cls in families().values() else ()
    return {
        field.name: field
        for field in dataclasses.fields(cls)
        if field.init and field.name not in {f.name for f in shared}
    }


CLASSES = {heading: cls for heading, (cls, _) in SECTIONS.items()} | plugins() | families()


def test_every_margin_and_every_optimiser_is_listed():
    assert names("Figures of merit") == {*MARGINS, MISFIT}
    rows = {row[0].strip("`"): row[1] for row in TABLES["Optimisers"][1:]}
    assert rows == known_optimisers()
    assert names("Plants") == set(GROUPS)


def test_every_dataclass_of_a_section_has_its_table():
    modules = [importlib.import_module(name) for name in {cls.__module__ for cls, _ in SECTIONS.values()}]
    schemas = {
        cls
        for module in modules
        for cls in vars(module).values()
        if dataclasses.is_dataclass(cls) and any("unit" in field.metadata for field in dataclasses.fields(cls))
    }
    common = {base for cls in schemas for base in cls.__mro__[1:]}  # what several sections have
    of_plugins = {
        cls
        for cls in schemas
        if cls.__module__.startswith(("cosim.plugins.drivers", "cosim.mechanics.bondgraph", "cosim.core.servo"))
    }
    assert schemas - common - of_plugins == {cls for cls, _ in SECTIONS.values()} - of_plugins


def test_every_plugin_is_documented_and_no_other():
    documented = {heading for heading in TABLES if heading.split()[0] in PACKAGES}
    without_keys = {heading for heading, cls in plugins().items() if not dataclasses.fields(cls)}
    assert documented == set(plugins()) - without_keys
    assert {heading for heading in TABLES if heading.startswith("Joints of `")} == set(families())
    assert {"Actuator `dc_motor`", "Trajectory `sine`", "Controller `pid`"} <= documented


@pytest.mark.parametrize("heading", [h for h, cls in CLASSES.items() if dataclasses.fields(cls)])
def test_a_table_agrees_with_its_dataclass(heading):
    assert heading in TABLES, f"no page of docs/ has a table under the heading '{heading}'"
    header, *rows = TABLES[heading]
    assert header == HEADER
    cls = CLASSES[heading]
    shown = {row[0].strip("`"): row for row in rows}
    fields = keys(cls)
    assert len(shown) == len(rows), "a key has two rows"
    assert set(shown) == set(fields) | (SECTIONS[heading][1] if heading in SECTIONS else set())
    for name, field in fields.items():
        *cells, meaning = shown[name]
        assert cells == expected_cells(cls, field)
        assert meaning


@pytest.mark.parametrize(
    ("field", "cells"),
    [
        (lambda m: m.param(unit="s", above=0, max=2, default=0.5), ["`a`", "number", "s", "0.5", "> 0, ≤ 2"]),
        (lambda m: m.param(), ["`a`", "number", "–", "required", "–"]),
        (lambda m: m.param(min=1, default=math.inf), ["`a`", "number", "–", "∞", "≥ 1"]),
    ],
)
def test_rows_show_unit_default_and_bounds(field, cells):
    types = importlib.import_module("cosim.core.types")
    cls = types.params(type("Params", (), {"__annotations__": {"a": float}, "a": field(types)}))
    assert expected_cells(cls, dataclasses.fields(cls)[0]) == cells


def test_every_type_of_joint_and_constraint_is_listed():
    assert names("Types of joints") == {*joint_definition.TYPES, "<file>.py"}
    assert {heading for heading in TABLES if heading.startswith("Constraint ")} == {
        f"Constraint `{name}`" for name in constraints.LAWS
    }


def test_every_task_of_a_tick_is_listed_in_its_order():
    assert tuple(row[0].strip("`") for row in TABLES["`schedule.order`"][1:]) == ORDER


def test_every_value_of_realtime_is_listed():
    (row,) = (row for row in TABLES["`schedule`"] if row[0] == "`realtime`")
    words = {word for word in schema.BOOLEANS if isinstance(word, str)}
    assert set(re.findall(r"`(\w+)`", row[1])) == words | {"strict"}
    assert not schema.BOOLEANS[row[3].strip("`")]


def test_the_spellings_of_units_are_listed():
    rows = TABLES["Other spellings"][1:]
    listed = {word: row[0].strip("`") for row in rows for word in re.findall(r"`([^`]+)`", row[1])}
    assert listed == {word: unit for word, unit in SPELLINGS.items()}


def test_limits_of_a_file_and_figures_of_real_motors_and_of_the_guard_are_stated():
    for number in (yaml_source.MOST_BYTES // 10**6, yaml_values.MOST_VALUES, yaml_values.DEEPEST, schedule.MOST_BODIES):
        assert f" {number:,} " in TEXT
    assert f"{tick_size.MOST_INSTRUCTIONS:,} instructions" in TEXT
    assert f"at most {part_names.LONGEST_NAME} characters" in TEXT
    assert f"more than {schema.LARGEST_NUMBER:g} in size" in TEXT.replace("1e12", "1e+12")
    assert f"minimum period is {schedule.show_time(schedule.SHORTEST_TICK_NS)} of the" in TEXT
    least = f"at least {guard.WATCHDOG_STEPS} steps"
    assert f"{least}; default: {WATCHDOG:g} s in rigs with real motors" in TEXT
    assert f"and {SETTLING:g} s later the motors are disabled" in TEXT
    assert f"default: {emulate.EFFORT:g} times the limit of the joint" in TEXT
    assert emulate.VELOCITY == 2 and "default: twice the limit of the joint" in TEXT
    (port,) = (field for field in dataclasses.fields(SerialSettings) if field.name == "baudrate")
    assert f"default for `dynamixel`: {port.default:g}" in TEXT
    stale = schedule.show_time(guard.STALE_NS)
    assert f"default: {guard.STALE_STEPS} steps, at least {stale};" in TEXT
    assert f"more than {LARGEST_FEEDBACK_EFFORT:.0e} N*m or N".replace("+", "") in TEXT
    assert f"at {DERATING:g} K below the limit to 0 at it" in TEXT
    assert f"Violations less than {PAUSE:g} s apart are one occurrence" in TEXT
    order = ", ".join(row.key for row in LIMITS)
    assert f"the stop reason is the last of: {order}." in TEXT


def test_every_kind_of_fault_is_listed_with_its_place():
    rows = {row[0].strip("`"): row[1] for row in TABLES["Kinds of faults"][1:]}
    kinds = dict.fromkeys(get_args(fault_injection.OnBus), "bus") | dict.fromkeys(
        get_args(fault_injection.AtJoint), "joint"
    )
    assert rows == kinds
    assert get_args(fault_injection.FaultCause) == FAULT_CAUSES
    meanings = {row[0].strip("`"): row[-1] for row in TABLES["`emulator.faults`"][1:]}
    for key, those in fault_injection.ONLY.items():
        assert meanings[key].startswith(f"of {', '.join(f'`{kind}`' for kind in those)}: ") or key == "size"


def test_every_unit_is_listed_with_its_quantity():
    listed = {row[1].strip("`"): re.findall(r"`([^`]+)`", row[2]) for row in TABLES["Units"][1:]}
    expected: dict[str, list[str]] = {}
    for unit, (dimension, _) in UNITS.items():
        expected.setdefault(dimension, []).append(unit)
    expected["1"].remove("1")  # written as a bare number
    assert listed == expected


SKATE = """
mechanism:
  moving_base: {z: {type: sine, amplitude: 0, frequency: 1}}
  bodies:
    - {name: skate, joint: body, type: free, mass: 1, inertia: [1, 1, 1]}
    - {name: post, joint: foot, parent: base, origin: {xyz: [5, 0, 0]}, mass: 1, inertia: [1, 1, 1]}
    - {name: lid, type: free, parent: base, mass: 1, inertia: [1, 1, 1]}
  reactions: [foot]
  loops: [{name: knob, type: spherical, parent: post, child: lid}]
  constraints:
    - {name: level, type: level.py, between: [lid], joints: [foot]}
    - {name: edge, type: knife_edge, body: skate, normal: [0, 1, 0]}
    - {name: leash, type: distance, between: [base, skate], points: [[0, 0, 1], [0, 0, 0]], length: 1}
  springs: [{name: cord, between: [base, skate], points: [[2, 0, 0], [0, 0, 0]], stiffness: 1}]
  torsion_springs: [{name: twist, between: [base, post], stiffness: 1}]
  frames: [{name: nose, link: skate}]
  forces: [{name: breeze, type: breeze.py, between: [skate]}]
joints:
  lid: {initial: {position: [5, 0, 0, 0, 0, 0, 1]}}
  body: {initial: {velocity: [1, 0, 0, 0, 0, 0]}}
  body.rz: {friction: {model: smooth, coulomb: 1}}
events: [{do: brake, of: body, effort: 1, at: 1}]
"""
BREEZE = """
from cosim.plugin import ForceLaw
from cosim.plugin import params
@params
class Params:
    pass
def load(params):
    return ForceLaw(lambda frames, q, v, t: [-frames[0].linear])
"""
LEVEL = """
from cosim.plugin import ConstraintLaw, ReactionSpec
from cosim.plugin import params
@params
class Params:
    pass
def load(params):
    return ConstraintLaw((ReactionSpec("push", "N", "m"),), lambda frames, q, t: [frames[0].rotation[2, 1] + q[0]])
"""
# signals of some mechanisms, as the table names them
OF_SOME = {
    **{f"<contact>/{what}": rf"sole/{what}" for what in OF_A_CONTACT},
    **{f"contacts/{what}": rf"contacts/{what}" for what in OF_THE_SOLVER},
    "energy/contacts": "energy/contacts",
    "<dof>/…": r"body\.(x|rz)/(position|velocity|acceleration|effort)",
    "moving_base.x/position": r"moving_base\.(y|z|roll|pitch|yaw)/position",
    "<frame>.x/position": r"nose\.(x|y|z|roll|pitch|yaw)/position",
    "<frame>.x/velocity": r"nose\.(x|y|z)/velocity",
    "<frame>.x/deflection": r"\w+\.(x|y|z)/deflection",
    "<joint>.qx/position": r"body\.q[xyzw]/position",
    "<constraint>/force_x": r"\w+/force",
    "<constraint>/resultant_force": r"knob/resultant_force",
    "<constraint>.<link>/force_x": r"level\.lid/(force_[xyz]|moment_[xyz]|resultant_(force|moment))",
    "<constraint>.<dof>/effort": r"level\.foot/effort",
    "<joint>/force_x": r"foot/(force_[xyz]|moment_[xyz]|resultant_(force|moment))",
    "<constraint>/violation": r"leash/violation",
    "energy/elastic": r"energy/elastic",
    **{f"<joint>/spring_{what}": rf"twist/spring_{what}" for what in ("angle", "moment", "energy")},
    "<joint>/step_error": r"body\.(x|rz)/step_error",
    "steps/count": r"steps/count",
    "steps/total": r"steps/total",
    "steps/unconverged": r"steps/unconverged",
    "energy/forces": r"energy/forces",
    "<force>/power": r"breeze/power",
    "<joint>/friction_effort": r"body\.rz/friction_effort",
    "<joint>/holding_effort": r"body\.rx/holding_effort",
    "<joint>/brake_slip": r"body\.rx/brake_slip",
    "<constraint>/slip": r"edge/slip",
    "<joint>/reference_effort": r"elbow_joint/reference_effort",
    "<joint>/external_effort": r"winch/external_effort",
    "energy/parts": r"energy/parts",
    "<part>/<output>": r"hoist/tension",
    "<bond>/power": r"hoist-mechanism/power",
    "<bond>/residual_energy": r"hoist-mechanism/residual_energy",
    **{f"coupling/{what}": rf"coupling/{what}" for what in ("step", "steps", "repeated")},
}
# figures of real joints, of the elbow on a dynamometer
OF_REAL = {
    f"<joint>/{what}"
    for what in (
        *("measured_error", "sample_time", "model_effort", "temperature", "age", "power", "model_power"),
        *("residual_energy", "load_effort"),
        *(f"load_{name}" for name in ("measured_effort", "measured_velocity", "power", "measured_power")),
        *(f"load_{name}" for name in ("residual_energy", "error", "delay", "inertia_error", "damping_error")),
        *(f"shadow_{name}" for name in ("effort", "drive", "position", "slip")),
        *("twin_current", "twin_voltage", "twin_motor_torque", "twin_gear_torque"),
        *("unit_disagreement", "units_proven"),
    )
}


FOOT = """
mechanism:
  bodies: [{name: foot, parent: base, type: free, mass: 1, inertia: [0.01, 0.01, 0.01]}]
  contacts: [{name: sole, link: foot, sphere: 0.1, with: ground, friction: 0.5}]
"""


def test_every_signal_and_every_field_of_the_summary_is_listed(tmp_path):
    folder = ROOT / "rigs"
    rig = load_rig(folder / "ur5_sim.yaml", ["joints.all.encoder={cpr: 4096}"])
    run = rig.run(0.01)
    generic = {re.sub(r"^(?!energy).*/", "<joint>/", name) for name in run.signals}
    walls = {f"<joint>/wall_{what}" for what in ("effort", "energy")}
    assert names("Signals") == generic | set(OF_SOME) | OF_REAL | walls
    assert {name.replace("<joint>", "elbow") for name in walls} < set(
        load_rig(folder / "haptic_wall.yaml").tick_model.signals.names
    )
    real = load_rig(folder / "dynamometer" / "elbow.yaml", ["guard.shadow={}"]).tick_model.signals.names
    measured = {f"elbow/measured_{what}" for what in ("position", "velocity")}
    measured_only = {name for name in real if name.startswith("elbow/")} - {
        f"elbow/{name.split('/')[1]}" for name in generic
    }
    assert measured < set(real)
    assert {name.replace("elbow", "<joint>") for name in measured_only} == OF_REAL
    (tmp_path / "skate.yaml").write_text(SKATE)
    (tmp_path / "breeze.py").write_text(BREEZE)
    (tmp_path / "level.py").write_text(LEVEL)
    estimating = "schedule.integrator=rodas4", "schedule.tolerance=0.1"
    skate = load_rig(tmp_path / "skate.yaml", estimating).run(0.01)
    dividing = load_rig(folder / "ur5_sim.yaml", ["schedule.integrator=rodas4", "schedule.substeps=auto"])
    apart = load_rig(folder / "ur5_sim.yaml", ["schedule.integrator=multirate"])
    sweep = "{type: chirp, of: effort, amplitude: 1, f0: 1, f1: 9, duration: 2 s}"
    excited = load_rig(folder / "ur5_sim.yaml", [f"controllers.arm.trajectory={sweep}"]).tick_model.signals.names
    elastic = load_rig(folder / "elastic" / "two_link_arm.yaml")
    coupled = load_rig(folder / "cosimulation" / "winch.yaml")
    parts_only = load_rig(folder / "cosimulation" / "quarter_car.yaml")
    recorded = [
        name for each in (dividing, apart, elastic, coupled, parts_only) for name in each.tick_model.signals.names
    ]
    (tmp_path / "foot.yaml").write_text(FOOT)
    recorded += [*excited, *skate.signals, *load_rig(tmp_path / "foot.yaml").tick_model.signals.names]
    for pattern in OF_SOME.values():
        assert any(re.fullmatch(pattern, name) for name in recorded), pattern
    assert {"violation_max", "reaction_peak", "largest"} == set(skate.summary["constraints"]["leash"])
    assert {"slip_max", "reaction_peak", "largest"} == set(skate.summary["constraints"]["edge"])
    assert set(skate.summary["reactions"]) == {"foot"}
    fields = {key for key, value in run.summary.items() if not isinstance(value, dict)}
    fields |= {f"joints.<joint>.{key}" for key in run.summary["joints"]["elbow_joint"]}
    fields |= {f"{part}.{key}" for part in ("energy", "speed") for key in run.summary[part]}
    fields |= {f"constraints.<name>.{key}" for key in ("violation_max", "reaction_peak", "largest")}
    fields.add("reactions.<joint>")
    fields |= {f"contacts.<contact>.{key}" for key in get_type_hints(ContactSummary)}
    (meaning,) = (row[1] for row in TABLES["Summary"] if row[0] == "`contact_solver`")
    assert set(get_type_hints(ContactSolverSummary)) == set(re.findall(r"`(\w+)`", meaning))
    linked = load_rig(folder / "drives" / "dc_link.yaml").run(0.01).summary["powers"]
    assert set(linked["table"]) == {ELECTRICAL, RETURNED, "copper", "gear"} and {"copper", "gear"} < set(LOSSES)
    fields |= {f"powers.<name>.{key}" for key in (ELECTRICAL, RETURNED, "<part>")}
    fields |= {f"temperatures.<joint>.<node>.{key}" for key in get_type_hints(TemperatureSummary)}
    fields |= {f"lost_steps.<joint>.{key}" for key in get_type_hints(LostStepsSummary)}
    fields |= {f"supplies.<name>.{key}" for key in get_type_hints(SupplySummary)}
    fields |= {f"bonds.<name>.{key}" for key in get_type_hints(PartBondSummary)}
    fields |= {f"torsion_springs.<name>.{key}" for key in get_type_hints(TorsionSpringSummary)}
    fields |= {f"real_joints.<joint>.{key}" for key in get_type_hints(DriveBondSummary)}
    fields |= {f"shadows.<joint>.{key}" for key in get_type_hints(ShadowSummary)}
    fields |= {f"units.<joint>.{key}" for key in get_type_hints(UnitsSummary)}
    own = get_type_hints(LoadBondSummary).keys() - get_type_hints(DriveBondSummary).keys()
    fields |= {f"load_motors.<joint>.{key}" for key in ("residual", *own)}  # and the others as for real joints
    fields |= {f"stream.{key}" for key in StreamSummary.__annotations__}
    fields = {*fields, "guard.<joint>.<limit>"} - {"stream"}
    assert names("Summary") - {"slip_max", "t_s", "name", "count", "energy_lost_J"} == fields | {"parameters", "engine"}
    cut = load_rig(folder / "ur5_sim.yaml", ["joints.elbow_joint.limits={effort: 1}"]).run(0.01).summary["guard"]
    (meaning,) = (row[1] for row in TABLES["Summary"] if row[0] == "`guard.<joint>.<limit>`")
    assert set(cut["elbow_joint"]["effort"]) == set(re.findall(r"`(\w+)`", meaning))


def test_every_signal_of_a_controller_is_listed():
    """Of every controller with every set of parameters; the first of those by axis."""
    blocks = (case.values[0].load(case.values[1], context(False)) for case in loaded())
    signals = {name: signal for block in blocks for name, signal in signals_of(block).items()}
    found = set()
    for name, signal in signals.items():
        first = re.sub("(?<=_)[xyz]+$", lambda axes: "x" * len(axes[0]), name)
        found.add(f"<joint>/{first}" if signal.shape else f"<controller>/{first}")
    wrapped = {f"<joint>/{name}" for name in ("unfiltered_effort", "scheduled_…")}
    assert names("Signals of controllers") == found | wrapped


def test_every_field_of_a_bus_is_listed():
    rig = load_rig(ROOT / "rigs" / "arm_can.yaml")
    meter = SimpleNamespace(load=lambda seconds, bitrate: 0.0, items_out=0, items_in=0, errors=0)
    slot = FeedforwardField(("base",))
    driver = SimpleNamespace(link=SimpleNamespace(name="line", meter=meter), lost=0, report=slot.report)
    drives = SimpleNamespace(groups=[SimpleNamespace(hardware=driver)], unsent=[0])
    (line,) = bus_report(rig.spec.drivers, rig.bus_loads, drives, 1.0)  # type: ignore
    fields = set(line) - {"feedforward"} | {f"feedforward.{key}" for key in line["feedforward"][0]}
    assert names("Buses and serial links") == fields


def flat(summary: dict, path: str = "") -> set[str]:
    """Names of the fields of a summary, with dots; a distribution of times is one field."""
    found: set[str] = set()
    for key, value in summary.items():
        inner = isinstance(value, dict) and not set(percentiles.PERCENTILES) <= set(value)
        found |= flat(value, f"{path}{key}.") if inner else {path + key}
    return found


def test_every_timing_signal_is_listed():
    rig = load_rig(ROOT / "rigs" / "ur5_sim.yaml", realtime=True)
    tasks = {task.name for task in rig.tasks}
    assert {*ORDER, "arm"} - {"controllers"} == tasks
    own = [name for name, _ in channels_of(rig)[len(rig.tick_model.signals.names) :]]
    generic = {"timing/<task>" if name.removeprefix("timing/") in tasks else name for name in own}
    assert names("Timing of a run") == generic


def late_summary(triggered: bool) -> tuple[dict, set[str]]:
    """The summary of two ticks, each late by 1 s in its only task, and the possible causes."""
    task = deadlines.TaskTime("write", 1, 0, 1, bus=False)
    stamps = np.array([[0, 0, 10**9, 10**9], [10**6, 10**9, 2 * 10**9, 2 * 10**9]])
    privilege = SimpleNamespace(name="<privilege>", granted=False, fix="request it")
    settings = {"slip_ns": 0, "lost_rows": 0, "warm_up_ns": 0, "rate": 1.0, "triggered": triggered, "engine": "Python"}
    found = deadlines.DeadlineRecord((task,), 1e6, np.arange(2), stamps, **settings, privileges=(privilege,))
    buses = deadlines.DeadlineRecord(
        (deadlines.TaskTime("write", 1, 0, 1, bus=True),), 1e6, np.arange(2), stamps, **settings, privileges=()
    )
    return found.summary(), {cause.replace("write", "<task>") for cause in (*found.causes, *buses.causes)}


def test_every_field_of_the_timing_is_listed_with_every_cause():
    (fields, causes), (triggered, _) = late_summary(False), late_summary(True)
    assert fields["missed"]["causes"] == {"write overran": 2}
    listed = [re.findall(r"`([^`]+)`", row[0]) for row in TABLES["`timing`"][1:]]
    generic = {re.sub(r"^(missed\.causes)\..*", r"\1", name) for name in flat(fields) | flat(triggered)}
    assert {name for row in listed for name in row} == {name.replace("tasks.write", "tasks.<task>") for name in generic}
    meanings = " ".join(row[1] for row in TABLES["`timing`"][1:])
    assert {"deadline_s", *fields["missed"]["worst"][0]} <= set(re.findall(r"`(\w+)`", meanings))
    assert f"`{{{', '.join(percentiles.PERCENTILES)}}}`" in TEXT
    assert names("Causes of missed deadlines") == causes


def test_every_state_and_every_method_of_the_scheduler_is_listed():
    rows = {row[0].strip("`"): row[1] for row in TABLES["The scheduler"][1:]}
    assert set(ALLOWED) | {"read", "read_view", "stop", "close"} == set(rows)
    assert {method: set(rows[method].split(", ")) for method in ALLOWED} == {
        method: {str(state) for state in states} for method, states in ALLOWED.items()
    }
    (sentence,) = re.findall(r"The states are: ([^.]*)\.", TEXT)
    assert set(re.split(r"[,\s]+", sentence)) - {"or", "stopping"} == {str(s) for s in SchedulerState} - {"stopping"}


def test_every_metric_is_listed():
    rows = {row[0].strip("`"): row[1:] for row in TABLES["Metrics"][1:]}
    shown = {"1": "–"}
    assert rows == {
        name: [shown.get(metric.unit, metric.unit.replace("*", "·")), metric.doc.replace("|", "\\|")]
        for name, metric in METRICS.items()
    }


def test_the_messages_of_the_stream_are_listed():
    listed = {row[0].strip("`") for row in TABLES["Samples"][1:]}
    assert listed == {*SAMPLE_FIELDS, "<part>"}
    assert {row[0].strip("`") for row in TABLES["Schema"][1:]} == {*Schema.__annotations__, "signals"}
    assert {row[0].strip("`") for row in TABLES["Events of the stream"][1:]} == set(event_of("", 0.0, 0.0, "info"))
    assert STREAM_EXAMPLE in TEXT


def test_a_controller_gets_every_listed_input():
    nv, index = 3, np.array([0, 2])
    listed = [row[0].strip("`") for row in TABLES["Inputs"][1:]]
    shapes = {row[0].strip("`"): {"(n,)": (2,), "(nv,)": (nv,)}[row[1]] for row in TABLES["Inputs"][1:]}
    seen = {}

    def update(t, p, x, u):
        seen.update(u)
        return {}, dict.fromkeys(COMMAND, np.zeros(2))

    params = dataclasses.make_dataclass("Params", [])()
    inputs, outputs = joint_signals(tuple(listed), 2), joint_signals(COMMAND, 2)
    block = SimpleNamespace(inputs=inputs, outputs=outputs, params=params, initial=dict, update=update)
    ControlLoop("c", block, index, 1, HoldTrajectory(np.zeros(2))).update(
        0.0, np.zeros(0), np.zeros(0), np.zeros(0), *np.zeros((4, nv)), np.zeros((2, nv)), BumplessStart.none(nv).flat
    )
    assert {name: np.shape(value) for name, value in seen.items()} == shapes
