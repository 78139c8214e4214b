"""docs/rig.md says what the schema says, docs/architecture.md where things are, and examples are rigs that work."""

import dataclasses
import importlib
import math
import pkgutil
import re
import shutil
from dataclasses import MISSING
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import yaml

from cosim import guard, load_rig, pacing, timing
from cosim.loop import Loop
from cosim.rig import (
    bodies,
    carrier,
    connections,
    controllers,
    couplings,
    events,
    geometry,
    guarding,
    joints,
    laws,
    mechanism,
    schedule,
    schema,
    spec,
)
from cosim.rig.rig import Hold
from cosim.rig.running import channels_of
from cosim.scheduler import ALLOWED, State
from cosim.spells import PAUSE
from cosim.telemetry import CHANNELS_EVERY
from cosim.trajectories.waypoints import read_waypoints
from cosim.types import COMMAND, PerJoint, joint_signals
from cosim.units import UNITS

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "rig.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

HEADER = ["key", "type", "unit", "default", "bounds", "meaning"]
# heading of the table -> the dataclass of that section, and keys that are read before it
SECTIONS: dict[str, tuple[type, set[str]]] = {
    "The file": (spec._RigFile, set()),
    "`mechanism`": (mechanism.MechanismFile, set()),
    "Inline bodies": (bodies.BodyKeys, set()),
    "A frame": (geometry.Origin, set()),
    "Limits of a joint": (connections.Limits, set()),
    "A mimic": (bodies.MimicKeys, set()),
    "`mechanism.carrier`": (carrier.CarrierKeys, set()),
    "`mechanism.loops`": (couplings.LoopKeys, set()),
    "Constraint `distance`": (laws.DistanceKeys, {"type"}),
    "Constraint `curve`": (laws.CurveKeys, {"type"}),
    "Constraint `gear`": (laws.GearKeys, {"type"}),
    "Constraint `knife_edge`": (laws.KnifeEdgeKeys, {"type"}),
    "Constraint `rolling`": (laws.RollingKeys, {"type"}),
    "Your own constraint": (laws.OwnKeys, {"type"}),
    "`mechanism.springs`": (couplings.SpringKeys, set()),
    "`mechanism.closing`": (mechanism.Closing, set()),
    "`joints.<joint>`": (joints._JointFile, set()),
    "`joints.<joint>.encoder`": (joints.EncoderSpec, set()),
    "`joints.<joint>.initial`": (joints._Initial, set()),
    "`joints.<joint>.limits`": (joints._Limits, set()),
    "`joints.<joint>.stops`": (joints._Stops, set()),
    "Joints of several dofs": (joints._SeveralFile, set()),
    "The start of such a joint": (joints._SeveralInitial, set()),
    "`events`": (events.EventKeys, set()),
    "The condition of an event": (events.WhenKeys, set()),
    "`controllers`": (controllers._ControllerFile, {"type"}),
    "Actions of a joint": (guarding.JointActions, set()),
    "`guard`": (guarding.GuardKeys, set()),
    "`guard.actions`": (guarding.Actions, set()),
    "`schedule`": (schedule._ScheduleFile, {"realtime"}),
    "`schedule.deadlines`": (schedule._DeadlineKeys, set()),
    "`schedule.realtime`": (pacing.Pacing, set()),
    "`schedule.realtime.pulse`": (pacing.Pulse, set()),
    "`telemetry`": (spec.TelemetrySpec, set()),
}
PACKAGES = {"Actuator": "cosim.actuators", "Trajectory": "cosim.trajectories", "Controller": "controllers"}


def plugins() -> dict[str, type]:
    """Heading -> Params of every module in the folders of the plug-ins."""
    found = {}
    for word, package in PACKAGES.items():
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            cls = getattr(importlib.import_module(f"{package}.{module.name}"), "Params", None)
            if cls is not None:
                found[f"{word} `{module.name}`"] = cls
    return found


CLASSES = {heading: cls for heading, (cls, _) in SECTIONS.items()} | plugins()


# --- reading Markdown -----------------------------------------------------------------------------


def tables(text: str) -> dict[str, list[list[str]]]:
    """Heading -> rows of cells of the first table below it, its header first."""
    found: dict[str, list[list[str]]] = {}
    heading, closed = "", True
    for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines():
        if line.startswith("#"):
            heading, closed = line.lstrip("# ").strip(), False
        elif line.startswith("|") and not closed:
            found.setdefault(heading, []).append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif heading in found:
            closed = True
    return {heading: [rows[0], *rows[2:]] for heading, rows in found.items()}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def names(heading: str) -> set[str]:
    """The words in code of the first column of a table."""
    return {name for row in TABLES[heading][1:] for name in re.findall(r"`([^`]+)`", row[0])}


TABLES = tables(DOCS)


# --- a field as its row shows it ------------------------------------------------------------------

TYPES = {
    float: "number",
    int: "whole number",
    bool: "true, false",
    str: "text",
    dict: "section",
    list: "list",
    PerJoint: "per joint",
}


def shown_type(hint: Any) -> str:
    inner = [arg for arg in get_args(hint) if arg is not NoneType]
    if hint in TYPES:
        return TYPES[hint]
    if NoneType in get_args(hint):
        return shown_type(inner[0])
    if get_origin(hint) is Literal:
        return ", ".join(f"`{option}`" for option in inner)
    if get_origin(hint) is Annotated:
        return shown_type(inner[0])
    if get_origin(hint) is tuple:
        words = schema._ELEMENTS[schema._plain(inner[0])]
        return words if ... in inner else f"{len(inner)} {words}"
    assert dataclasses.is_dataclass(hint)
    return "section"


def shown_default(value: Any) -> str:
    if value is MISSING:
        return "required"
    if isinstance(value, tuple):
        return f"[{', '.join(map(shown_default, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, f"{value:g}")
    if isinstance(value, str):
        return f"`{value}`" if value else "empty"
    return "none"


def shown_bounds(meta: Any) -> str:
    signs = {"above": ">", "min": "≥", "max": "≤"}
    return ", ".join(f"{sign} {meta[key]:g}" for key, sign in signs.items() if meta[key] is not None)


def expected_cells(cls: type, field: dataclasses.Field) -> list[str]:
    """The cells of a field's row, without its meaning; a dash where there is nothing to say."""
    hint = get_type_hints(cls, include_extras=True)[field.name]
    unit = "" if field.metadata["unit"] == "1" else field.metadata["unit"]
    default = "none" if dataclasses.is_dataclass(field.default) else shown_default(field.default)
    cells = [f"`{field.name}`", shown_type(hint), unit, default, shown_bounds(field.metadata)]
    return [cell or "–" for cell in cells]


# --- the tables of keys ---------------------------------------------------------------------------


def test_every_dataclass_of_a_section_has_its_table():
    modules = (spec, joints, controllers, schedule, mechanism, bodies, connections, couplings, laws, geometry)
    modules += (carrier, events, pacing, guarding)
    schemas = {
        cls
        for module in modules
        for cls in vars(module).values()
        if dataclasses.is_dataclass(cls) and any("unit" in field.metadata for field in dataclasses.fields(cls))
    }
    common = {base for cls in schemas for base in cls.__mro__[1:]}  # what several sections have
    assert schemas - common == {cls for cls, _ in SECTIONS.values()}


def test_every_part_in_the_folders_is_documented_and_no_other():
    documented = {heading for heading in TABLES if heading.split()[0] in PACKAGES}
    without_keys = {heading for heading, cls in plugins().items() if not dataclasses.fields(cls)}
    assert documented == set(plugins()) - without_keys
    assert {"Actuator `dc_motor`", "Trajectory `sine`", "Controller `pid`"} <= documented


@pytest.mark.parametrize("heading", [h for h, cls in CLASSES.items() if dataclasses.fields(cls)])
def test_a_table_says_what_the_dataclass_says(heading):
    assert heading in TABLES, f"docs/rig.md has no table below a heading '{heading}'"
    header, *rows = TABLES[heading]
    assert header == HEADER
    cls = CLASSES[heading]
    besides = SECTIONS[heading][1] if heading in SECTIONS else set()
    shown = {row[0].strip("`"): row for row in rows}
    fields = {field.name: field for field in dataclasses.fields(cls)}
    assert len(shown) == len(rows), "a key has two rows"
    assert set(shown) == set(fields) | besides
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
    types = importlib.import_module("cosim.types")
    cls = types.params(type("Params", (), {"__annotations__": {"a": float}, "a": field(types)}))
    assert expected_cells(cls, dataclasses.fields(cls)[0]) == cells


def test_every_type_of_joint_and_constraint_is_listed():
    assert names("Types of joints") == {*connections.TYPES, "<file>.py"}
    assert {heading for heading in TABLES if heading.startswith("Constraint ")} == {
        f"Constraint `{name}`" for name in laws.LAWS
    }


def test_every_task_of_a_tick_is_listed_in_its_order():
    assert tuple(row[0].strip("`") for row in TABLES["`schedule.order`"][1:]) == pacing.ORDER


def test_every_word_for_real_time_is_listed():
    (row,) = (row for row in TABLES["`schedule`"] if row[0] == "`realtime`")
    words = {word for word in schedule._WORDS if isinstance(word, str)}
    assert set(re.findall(r"`(\w+)`", row[1])) == words
    assert schedule._WORDS[row[3].strip("`")] is None


def test_the_shortest_time_between_ticks_is_told():
    assert f"there are {schedule.show_time(schedule.SHORTEST)} of the" in DOCS


def test_the_figures_of_the_guard_are_told():
    stale = schedule.show_time(guarding.STALE_NS)
    assert f"without it {guarding.STALE_STEPS} steps, but at least {stale};" in DOCS
    assert f"ask for more than {guard.SANE:.0e} N*m or N".replace("+", "") in DOCS
    assert f"at {guard.DERATING:g} K below the limit to 0 at it" in DOCS
    assert f"What comes back within {PAUSE:g} s is one spell" in DOCS
    order = ", ".join(guard.KINDS)
    assert f"the one told is the last of:\n{order}." in DOCS


def test_every_unit_is_listed_with_its_quantity():
    listed = {row[1].strip("`"): re.findall(r"`([^`]+)`", row[2]) for row in TABLES["Units"][1:]}
    expected: dict[str, list[str]] = {}
    for unit, (dimension, _) in UNITS.items():
        expected.setdefault(dimension, []).append(unit)
    expected["1"].remove("1")  # written as a bare number
    assert listed == expected


# --- what comes out, what a controller may ask for --------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A copy of the sample rigs: paths in examples are relative to it."""
    shutil.copytree(ROOT / "rigs", tmp_path / "rigs")
    return tmp_path / "rigs"


SKATE = """
mechanism:
  carrier: {z: {type: sine, amplitude: 0, frequency: 1}}
  bodies: [{name: skate, joint: body, type: free, mass: 1, inertia: [1, 1, 1]}]
  constraints:
    - {name: edge, type: knife_edge, body: skate, normal: [0, 1, 0]}
    - {name: leash, type: distance, between: [base, skate], points: [[0, 0, 1], [0, 0, 0]], length: 1}
  springs: [{name: cord, between: [base, skate], points: [[2, 0, 0], [0, 0, 0]], stiffness: 1}]
joints: {body: {initial: {velocity: [1, 0, 0, 0, 0, 0]}}}
"""
# signals of some mechanisms, as the table names them
OF_SOME = {
    "<dof>/…": r"body\.(x|rz)/(position|velocity|acceleration|effort)",
    "carrier.x/position": r"carrier\.(y|z|roll|pitch|yaw)/position",
    "<joint>.qx/position": r"body\.q[xyzw]/position",
    "<constraint>/force_x": r"\w+/force",
    "<constraint>/gap": r"leash/gap",
    "energy/elastic": r"energy/elastic",
    "<constraint>/slip": r"edge/slip",
}


def test_every_signal_and_every_field_of_the_summary_is_listed(folder):
    rig = load_rig(folder / "ur5_sim.yaml", ["joints.all.encoder={counts: 4096}"])
    run = rig.run(0.01)
    generic = {re.sub(r"^(?!energy).*/", "<joint>/", name) for name in run.signals}
    assert names("Signals") == generic | set(OF_SOME)
    (folder / "skate.yaml").write_text(SKATE)
    skate = load_rig(folder / "skate.yaml").run(0.01)
    for pattern in OF_SOME.values():
        assert any(re.fullmatch(pattern, name) for name in skate.signals), pattern
    assert {"gap_max", "reaction_peak"} == set(skate.summary["constraints"]["leash"])
    assert {"slip_max", "reaction_peak"} == set(skate.summary["constraints"]["edge"])
    fields = {key for key, value in run.summary.items() if not isinstance(value, dict)}
    fields |= {f"joints.<joint>.{key}" for key in run.summary["joints"]["elbow_joint"]}
    fields |= {f"{part}.{key}" for part in ("energy", "speed") for key in run.summary[part]}
    fields |= {f"constraints.<name>.{key}" for key in ("gap_max", "reaction_peak")}
    fields.add("guard.<joint>.<limit>")
    assert names("Summary") - {"slip_max", "t_s", "name", "count", "energy_lost_J"} == fields | {"compiled"}
    cut = load_rig(folder / "ur5_sim.yaml", ["joints.elbow_joint.limits={effort: 1}"]).run(0.01).summary["guard"]
    (meaning,) = (row[1] for row in TABLES["Summary"] if row[0] == "`guard.<joint>.<limit>`")
    assert set(cut["elbow_joint"]["effort"]) == set(re.findall(r"`(\w+)`", meaning))


def flat(summary: dict, path: str = "") -> set[str]:
    """Names of the fields of a summary, with dots; a time told as a spread is one field."""
    found: set[str] = set()
    for key, value in summary.items():
        inner = isinstance(value, dict) and not set(timing.SPREAD) <= set(value)
        found |= flat(value, f"{path}{key}.") if inner else {path + key}
    return found


def test_every_signal_of_a_run_on_time_is_listed():
    rig = load_rig(ROOT / "rigs" / "ur5_sim.yaml", realtime=True)
    tasks = {task.name for task in rig.tasks}
    assert {*pacing.ORDER, "arm"} - {"controllers"} == tasks
    own = [name for name, _ in channels_of(rig)[len(rig.simulation.signals) :]]
    generic = {"timing/<task>" if name.removeprefix("timing/") in tasks else name for name in own}
    assert names("How on time a run was") == generic


def told(pulsed: bool) -> tuple[dict, set[str]]:
    """The summary of two ticks, each a second late in its only task, and the causes that such a run may name."""
    task = timing.TaskTime("write", 1, 0, 1, bus=False)
    stamps = np.array([[0, 0, 10**9, 10**9], [10**6, 10**9, 2 * 10**9, 2 * 10**9]])
    right = SimpleNamespace(name="<right>", granted=False, mend="ask")
    settings = {"lost_ns": 0, "dropped": 0, "grace_ns": 0, "rate": 1.0, "pulsed": pulsed, "lane": "Python"}
    found = timing.Timing((task,), 1e6, np.arange(2), stamps, **settings, rights=(right,))
    buses = timing.Timing(
        (timing.TaskTime("write", 1, 0, 1, bus=True),), 1e6, np.arange(2), stamps, **settings, rights=()
    )
    return found.summary(), {cause.replace("write", "<task>") for cause in (*found.causes, *buses.causes)}


def test_every_field_of_the_timing_is_listed_with_every_cause():
    (fields, causes), (pulsed, _) = told(False), told(True)
    assert fields["missed"]["causes"] == {"write overran": 2}
    listed = [re.findall(r"`([^`]+)`", row[0]) for row in TABLES["`timing`"][1:]]
    generic = {re.sub(r"^(missed\.causes)\..*", r"\1", name) for name in flat(fields) | flat(pulsed)}
    assert {name for row in listed for name in row} == {name.replace("tasks.write", "tasks.<task>") for name in generic}
    meanings = " ".join(row[1] for row in TABLES["`timing`"][1:])
    assert {"deadline_s", *fields["missed"]["worst"][0]} <= set(re.findall(r"`(\w+)`", meanings))
    assert f"`{{{', '.join(timing.SPREAD)}}}`" in DOCS
    assert names("Why a deadline was missed") == causes


def test_every_state_is_told_and_from_which_of_them_a_scheduler_takes_a_call():
    rows = {row[0].strip("`"): row[1] for row in TABLES["By hand"][1:]}
    assert set(ALLOWED) | {"read", "stop", "close"} == set(rows)
    assert {method: set(rows[method].split(", ")) for method in ALLOWED} == {
        method: {str(state) for state in states} for method, states in ALLOWED.items()
    }
    (sentence,) = re.findall(r"goes through its states one by one:\s([^.]*)\.", DOCS)
    assert set(re.split(r"[,\s]+", sentence)) - {"or", "stopping"} == {str(s) for s in State} - {"stopping"}


def test_telemetry_repeats_the_names_as_often_as_told():
    assert f"every {CHANNELS_EVERY} samples" in DOCS


def test_a_controller_gets_every_input_that_is_listed():
    nv, index = 3, np.array([0, 2])
    listed = [row[0].strip("`") for row in TABLES["Inputs"][1:]]
    shapes = {row[0].strip("`"): {"(n,)": (2,), "(nv,)": (nv,)}[row[1]] for row in TABLES["Inputs"][1:]}
    seen = {}

    def update(t, p, x, u):
        seen.update(u)
        return {}, dict.fromkeys(COMMAND, np.zeros(2))

    params = dataclasses.make_dataclass("Params", [])()
    inputs = joint_signals(tuple(listed), 2)
    block = SimpleNamespace(inputs=inputs, params=params, initial=dict, update=update)
    Loop("c", block, index, 1, Hold(np.zeros(2))).update(
        0.0, np.zeros(0), np.zeros(0), np.zeros(0), *np.zeros((4, nv)), np.zeros(2 + 2 * nv) + 1.0
    )
    assert {name: np.shape(value) for name, value in seen.items()} == shapes


# --- where things are -------------------------------------------------------------------------------


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", ["README.md", "docs/rig.md", "docs/architecture.md"])
def test_links_lead_somewhere(name):
    file = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        to = (file.parent / path).resolve() if path else file
        assert to.exists(), target
        if anchor:
            text = re.sub(r"```.*?```", "", to.read_text(encoding="utf-8"), flags=re.DOTALL)
            assert anchor in {slug(found) for found in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)}, target


def test_the_architecture_names_every_module_and_nothing_else():
    rows = tables(ARCHITECTURE)["Where things are"][1:]
    told = [word for row in rows for cell in re.findall(r"`([^`]+)`", row[0]) for word in cell.split()]
    folders = {word.strip("/") for word in told if word.endswith("/")}
    assert all((ROOT / folder).is_dir() for folder in folders)
    files = {Path(word).name for word in told if word.endswith(".py")}
    package = ROOT / "cosim"
    assert files == {file.name for file in package.glob("*.py") if not file.name.startswith("__")}
    assert {f"cosim/{init.parent.name}" for init in package.glob("*/__init__.py")} <= folders
    for folder in ("compile", "multibody", "doctor", "rig"):
        (meaning,) = (row[1] for row in rows if row[0] == f"`cosim/{folder}/`")
        known = {file.stem for file in (package / folder).glob("*.py")} - {"__init__"}
        named = set(re.findall(r"`(\w+)`", meaning))
        assert named <= known, "names a module that is gone"
        if folder in ("compile", "doctor"):
            assert named == known


# --- examples ---------------------------------------------------------------------------------------


def complete_rigs() -> list[str]:
    texts = [*blocks(DOCS, "yaml"), *blocks(README, "yaml")]
    return [text for text in texts if "mechanism" in (yaml.safe_load(text) or {})]


def own_controller() -> str:
    return next(text for text in blocks(DOCS, "python") if "def update" in text)


def beside(folder: Path) -> Path:
    """Write the files that examples name into the folder of the rigs."""
    (folder / "pd_spring.py").write_text(own_controller())
    (folder / "path.csv").write_text(blocks(DOCS, "csv")[0])
    for file, word in (("crank.py", "GeneralMotion("), ("parallel.py", "Law(")):
        (folder / file).write_text(next(text for text in blocks(DOCS, "python") if word in text))
    return folder / "example.yaml"


def test_there_are_examples():
    assert len(complete_rigs()) >= 5


@pytest.mark.parametrize("text", complete_rigs())
def test_an_example_is_a_rig_that_runs_well(folder, text):
    path = beside(folder)
    path.write_text(text)
    summary = load_rig(path).run().summary
    assert summary["outcome"] == "finished"
    assert summary["energy"]["residual_relative"] < 0.01
    errors = [joint["error_rms"] for joint in summary["joints"].values() if joint["error_rms"] is not None]
    assert max(errors, default=0.0) < 0.1


def test_a_rig_goes_through_its_states_as_the_example_says(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder.parent)
    (text,) = (text for text in blocks(README, "python") if "scheduler()" in text)
    found: dict[str, Any] = {}
    exec(compile(text, "README.md", "exec"), found)
    state, *counts = capsys.readouterr().out.splitlines()
    assert state.startswith("stopped {'count': ")
    assert sum(map(int, counts)) == 100
    assert found["elbow"].shape == found["t"].shape
    assert found["scheduler"].state == State.STOPPED


def test_every_example_of_yaml_is_yaml():
    for text in [*blocks(DOCS, "yaml"), *blocks(README, "yaml")]:
        assert isinstance(yaml.safe_load(text), dict)


def test_the_csv_example_holds_waypoints(tmp_path):
    path = tmp_path / "path.csv"
    path.write_text(blocks(DOCS, "csv")[0])
    times, positions = read_waypoints(path, ("shoulder", "elbow"))
    assert positions.shape == (len(times), 2)


def test_the_controller_of_the_example_runs_in_machine_code(folder):
    path = beside(folder)
    path.write_text(next(text for text in complete_rigs() if "pd_spring.py" in text))
    run = load_rig(path).run(0.05)
    assert set(run.summary["compiled"].values()) == {"machine code"}
    name = run.rig.joints[0]
    assert abs(run[f"{name}/effort"]).max() > 0.0
    interpreted = load_rig(path, interpret=True).run(0.05)
    np.testing.assert_allclose(interpreted.values, run.values, rtol=0, atol=1e-9)
