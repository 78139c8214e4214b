"""Links have targets, the table of rooms matches the folders, and examples run."""

from __future__ import annotations

import dataclasses
import importlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cosim import Rig, load_rig
from cosim.apps.deploy.fmu_export.fmu_file import fmu_of_part
from cosim.apps.new.command import new_rig
from cosim.cli.command_line import all_commands
from cosim.cli.run_overrides import shadow_of
from cosim.core import ops
from cosim.core.plugin_loading import DRIVER
from cosim.core.tables.joint_table import TableFile
from cosim.core.units import parse_quantity
from cosim.execution.scheduler import SchedulerState
from cosim.plugins.drivers.common.wiring import JointParams, Units
from cosim.plugins.trajectories.waypoints import read_waypoints
from cosim.rig.run.run import Run
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.rules import RULES
from tests.docs.documents import ARCHITECTURE, DOCS, PAGES, README, ROOT, TABLES, TEXT, blocks, tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the sample rigs, and the files that examples name: their paths are relative to it."""
    folder = tmp_path_factory.mktemp("examples") / "rigs"
    shutil.copytree(ROOT / "rigs", folder)
    (folder / "path.csv").write_text(blocks(DOCS, "csv")[0])
    words = {
        "pd_spring": "class PdSpring",
        "crank": "GeneralMotion(",
        "parallel": "ConstraintLaw(",
        "bounce": "ForceLaw(",
        "ramp": "class Ramp",
    }
    for file, word in {**words, "spring": "class Spring", "spinner": "class Flywheel"}.items():
        (folder / f"{file}.py").write_text(python_block(word))
    return folder


def python_block(word: str) -> str:
    return next(text for text in blocks(DOCS, "python") if word in text)


def yaml_block(word: str) -> str:
    (text,) = (text for text in blocks(DOCS, "yaml") if word in text)
    return text


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", *(f"docs/{page}" for page in PAGES)])
def test_every_link_has_a_target(name):
    file = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        to = (file.parent / path).resolve() if path else file
        assert to.exists(), target
        if anchor:
            text = re.sub(r"```.*?```", "", to.read_text(encoding="utf-8"), flags=re.DOTALL)
            assert anchor in {slug(found) for found in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)}, target


def test_the_architecture_names_every_room_and_its_parts_in_the_order_of_the_import_contract():
    rows = {
        re.findall(r"`cosim/(\w+)/`", room)[0]: set(re.findall(r"`(\w+)/`", parts))
        for room, parts in tables(ARCHITECTURE)["Rooms"][1:]
    }
    package = ROOT / "cosim"
    assert rows == {
        room: {init.parent.name for init in (package / room).glob("*/__init__.py")}
        for room in (init.parent.name for init in package.glob("*/__init__.py"))
    }
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contract, *_ = (each for each in tools["importlinter"]["contracts"] if each["type"] == "layers")
    assert list(rows) == contract["layers"][::-1]


FAMILIES = TABLES["Families"][1:]


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row[0].strip("`"))
def test_a_family_is_listed_with_its_modes(row):
    module = importlib.import_module(f"cosim.plugins.drivers.{row[0].strip('`')}")
    modes, *_ = row[3].split(";")
    assert set(re.findall(r"`(\w+)`", modes)) == module.MODES
    fields = {field.name for field in dataclasses.fields(module.Params)}
    assert ("serial port" in row[2]) == ("port" in fields)
    assert ("CAN" in row[2].replace("fdcanusb", "")) == ("bus" in fields)
    assert (row[6] != "no") == ("homing" in {field.name for field in dataclasses.fields(module.JointParams)})


def test_every_table_of_families_has_all_of_them():
    on_disk = {path.parent.name for path in (ROOT / "drivers").glob("*/driver.py")} - {"common", "sim", "template"}
    tables_of = {
        "docs/reference/drivers/index.md, Families": TABLES["Families"],
        "docs/reference/drivers/index.md, Which family keeps whole turns": TABLES["Which family keeps whole turns"],
        "docs/reference/drivers/index.md, Versions and units": TABLES["Versions and units"],
        "docs/reference/drivers/index.md, What was tested": TABLES["What was tested"],
        "README.md, Real motors": tables(README)["Real motors"],
        "docs/explanation/safety.md, Torque off and watchdog of each family": motors_off(),
    }
    wrong = {place: {row[0].strip("`") for row in table[1:]} ^ on_disk for place, table in tables_of.items()}
    assert not {place: names for place, names in wrong.items() if names}, "a family has no row, or a row no family"


def motors_off() -> list[list[str]]:
    """The table of torque off and watchdogs."""
    text = DOCS.partition("| family | off |")
    return next(iter(tables(f"# off\n{text[1]}{text[2]}").values()))


def test_every_name_that_a_family_defines_is_listed():
    rows = TABLES["6. Define the contract of the family"][1:]
    required = {row[0].strip("`") for row in rows if not row[1].startswith("optional")}
    assert required == set(DRIVER.needs) and "`TURNS_AT_POWER_OFF`" in {row[0] for row in rows}
    (text,) = (text for text in blocks(DOCS, "toml") if DRIVER.group in text)
    assert list(tomllib.loads(text)["project"]["entry-points"]) == [DRIVER.group]


def test_every_conformance_rule_is_listed():
    assert {int(row[0]): row[1] for row in TABLES["Conformance rules"][1:]} == RULES


def test_the_example_of_wiring_is_correct():
    (keys,) = re.findall(r"`elbow: (\{.*?\})` is an elbow", TEXT)
    joint = yaml.safe_load(keys)
    zero = parse_quantity(joint.pop("zero"), "rad")
    units = Units([JointParams(zero=zero, direction=joint["direction"], ratio=joint["ratio"])])
    at = np.rad2deg(units.drive_position(np.deg2rad([55.0])))
    assert at == pytest.approx([-405.0]) and "= −405°, −1.125 turns" in TEXT
    assert units.drive_effort(np.array([1.8])) == pytest.approx([-0.2])
    assert units.drive_velocity(np.array([2.0])) == pytest.approx([-18.0])
    assert units.drive_gain(np.array([81.0])) == pytest.approx([1.0])


def commands() -> list[list[str]]:
    """Every command of cosim on the pages that can be run as it stands."""
    text = "\n".join(block for page in (README, DOCS) for block in blocks(page, "sh"))
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("cosim ")]


# rigs that a command of a page writes -> their robot
NEW = {words[2]: words[3] for words in commands() if words[1] == "new"}
# overlays that a command of a page writes
OVERLAYS = {
    str(Path(words[words.index("-o") + 1]).with_suffix(".yaml"))
    for words in commands()
    if words[1] == "identify" and "-o" in words
}
# FMUs of parts that a command of a page writes -> their rig and part
FMUS = {
    f"{part}.fmu": (words[3], part)
    for words in commands()
    if words[1:3] == ["export", "fmu"] and "--part" in words
    for part in [words[words.index("--part") + 1]]
}


@cache
def is_read(file: Path, *overrides: str, for_drives: bool = False) -> bool:
    """Once for all commands with the same rig: whether it is a rig, or one with drives."""
    return bool(read_rig(file, overrides).drivers) if for_drives else load_rig(file, overrides) is not None


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_command_on_a_page_can_be_run(words, tmp_path, monkeypatch):
    _, command, *rest = words
    if OVERLAYS & set(words):
        monkeypatch.chdir(tmp_path)
        for name in OVERLAYS & set(words):
            Path(name).write_text("schedule.duration: 1 s\n")
    parser, rest = all_commands().chosen([command, *rest])
    assert parser is not None
    given = vars(parser.parse_command(rest))
    path = given.get("rig")
    if path is None or Path(path).suffix != ".yaml":
        return
    if str(path) in NEW:
        new_rig(tmp_path / path, str(ROOT / NEW[str(path)]))
        path = tmp_path / path
    faults = given.get("faults", [])
    overrides = [f"emulator.faults=[{', '.join(f'{{{text}}}' for text in faults)}]"] if faults else []
    overrides += given.get("overrides", [])
    overrides += shadow_of(ROOT / path, overrides) if given.get("shadow") else []
    assert is_read(ROOT / path, *overrides, for_drives=command == "emulate")


def complete_rigs() -> list[str]:
    texts = [*blocks(DOCS, "yaml"), *blocks(README, "yaml")]
    texts = [text for text in texts if "drivers:" not in text]
    return [text for text in texts if "mechanism" in (yaml.safe_load(text) or {})]


def test_there_are_examples():
    assert len(complete_rigs()) >= 5


@pytest.mark.parametrize("text", complete_rigs())
def test_an_example_runs_with_small_errors(folder, text):
    path = folder / "example.yaml"
    path.write_text(text)
    for file in (file for file in FMUS if file in text):
        rig, part = FMUS[file]
        (folder / file).write_bytes(fmu_of_part(load_rig(ROOT / rig), part, 2))
    summary = load_rig(path).run().summary
    assert summary["outcome"] == "finished"
    assert summary["energy"]["residual_relative"] < 0.01
    errors = [joint["error_rms"] for joint in summary["joints"].values() if joint["error_rms"] is not None]
    assert max(errors, default=0.0) < 0.1


def test_the_example_of_parts_without_a_mechanism_makes_the_documented_steps(tmp_path):
    path = tmp_path / "example.yaml"
    path.write_text(yaml_block("chassis.py"))
    for file in ("chassis.py", "wheel.py"):
        (tmp_path / file).write_text((ROOT / "rigs" / "cosimulation" / file).read_text())
    run, sample = (load_rig(rig).run() for rig in (path, ROOT / "rigs" / "cosimulation" / "quarter_car.yaml"))
    steps = run.summary["coupling_steps"]
    assert f"coupling {steps['count']} steps" in (ROOT / "docs" / "howto" / "co-simulation.md").read_text()
    assert steps == sample.summary["coupling_steps"]


def test_the_examples_of_a_trajectory_and_an_actuator_run_and_are_compiled(tmp_path):
    words = {"approach.py": "class Approach", "lagging.py": "class Lagging"}
    for file, word in words.items():
        (tmp_path / file).write_text(python_block(word))
    sections: dict[str, Any] = {key: value for file in words for key, value in yaml.safe_load(yaml_block(file)).items()}
    bob = {"name": "bob", "joint": "pivot", "mass": 1.0, "com": [0.2, 0, 0], "inertia": [0.01, 0.02, 0.02]}
    mechanism = {"bodies": [{**bob, "axis": [0, 1, 0]}]}
    schedule = {"step": "1 ms", "duration": 1.0}
    rig = Rig.from_dict({"name": "r", "mechanism": mechanism, "schedule": schedule, **sections}, tmp_path)
    run = rig.run()
    assert rig.native and run["pivot/position"][-1] == pytest.approx(np.pi / 4, abs=0.05)
    t, reference = run.t, run["pivot/reference_position"]
    np.testing.assert_allclose(np.gradient(reference, t)[1:-1], run["pivot/reference_velocity"][1:-1], atol=1e-4)
    assert run.summary["energy"]["residual_relative"] < 1e-3


def test_every_function_of_ops_is_listed():
    (rows,) = (rows for heading, rows in TABLES.items() if heading == "The functions of `cosim.plugin.ops`")
    listed = {name for row in rows[1:] for name in re.findall(r"`(\w+)`", row[0])}
    own = {
        name for name, item in vars(ops).items() if callable(item) and getattr(item, "__module__", "") == ops.__name__
    }
    assert listed == {name for name in own if not name.startswith("_")} - {"Traced"}


def test_the_example_of_the_scheduler_runs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder.parent)
    text = python_block("scheduler()")
    found: dict[str, Any] = {}
    exec(compile(text, "docs/reference/scheduler.md", "exec"), found)
    state, *counts = capsys.readouterr().out.splitlines()
    assert state.startswith("stopped {'count': ")
    assert sum(map(int, counts)) == 100
    assert found["elbow"].shape == found["t"].shape
    assert found["scheduler"].state == SchedulerState.STOPPED


def test_the_example_with_a_real_motor_loads_and_runs_simulated(folder):
    (real,) = (text for text in blocks(DOCS, "yaml") if "drivers:" in text and "mechanism:" in text)
    (wrong,) = (text for text in blocks(DOCS, "yaml") if text.startswith("emulator:"))
    path = folder / "example.yaml"
    path.write_text(real + wrong)
    assert load_rig(path).hardware
    simulated = load_rig(path, ["drivers=[]", "emulator=null", "guard.estop=null"])
    assert simulated.run(0.5).summary["outcome"] == "finished"


def test_every_yaml_example_is_valid():
    for text in [*blocks(DOCS, "yaml"), *blocks(README, "yaml")]:
        assert isinstance(yaml.safe_load(text), dict)


def test_the_csv_example_has_waypoints(tmp_path):
    path = tmp_path / "path.csv"
    path.write_text(blocks(DOCS, "csv")[0])
    table = read_waypoints(TableFile(file=path.name), tmp_path, ("shoulder", "elbow"))
    assert table.values.shape == (len(table.t), 2) and table.notes == ()


def test_the_example_of_a_controller_is_compiled(folder):
    path = folder / "example.yaml"
    path.write_text(next(text for text in complete_rigs() if "pd_spring.py" in text))
    run = load_rig(path).run(0.05)
    assert set(run.summary["engine"].values()) == {"compiled"}
    name = run.rig.joints[0]
    assert abs(run[f"{name}/effort"]).max() > 0.0
    interpreted = load_rig(path, interpret=True).run(0.05)
    np.testing.assert_allclose(interpreted.values, run.values, rtol=0, atol=1e-9)


def test_every_command_and_every_option_is_on_its_page():
    page = PAGES["reference/cli.md"]
    parts = page.split("\n## `cosim ")[1:]
    commands = all_commands().parsers
    sections = {name: part for name in commands for part in parts if re.match(rf"{name}\b", part)}
    assert set(sections) == set(commands) and len(parts) == len(sections)
    for name, command in commands.items():
        options = set(re.findall(r"--[\w-]+", command.format_usage()))
        assert set(re.findall(r"^\| `(--[\w-]+)", sections[name], flags=re.MULTILINE)) == options, name


def scripts() -> dict[str, str]:
    """Every script in Python on a page that runs a rig, by page and number."""
    pages = {"README.md": README, **PAGES}
    found = ((page, k, text) for page in pages for k, text in enumerate(blocks(pages[page], "python")))
    return {f"{page} {k}": text for page, k, text in found if 'load_rig("rigs/' in text or "Rig.from_dict(" in text}


@pytest.mark.parametrize("name", scripts())
def test_a_script_on_a_page_runs_as_it_stands(name, monkeypatch, tmp_path):
    (tmp_path / "rigs").symlink_to(ROOT / "rigs")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    exec(compile(scripts()[name], name, "exec"), scope)
    runs = [value for value in scope.values() if isinstance(value, Run)]
    assert all(run.summary["outcome"] == "finished" for run in runs)
    assert runs or {"scheduler", "batch", "gradient", "motion", "acceleration"} & set(scope)


def test_the_subscriber_on_a_page_prints_samples(tmp_path):
    """Beside a run that publishes them."""
    endpoint = f"ipc://{tmp_path}/stream"
    script = python_block("zmq.SUB").replace("tcp://127.0.0.1:9872", endpoint)
    words = ["run", str(ROOT / "rigs" / "ur5_sim.yaml"), "--realtime", "--telemetry", endpoint, "--duration", "600"]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen([sys.executable, "-u", "-c", script], stdout=pipe, text=True) as subscriber,
        subprocess.Popen([sys.executable, "-m", "cosim", *words], stdout=subprocess.DEVNULL) as run,
    ):
        try:
            assert subscriber.stdout is not None
            first = subscriber.stdout.readline()
            assert re.match(r"\d+\.\d+ 1\.\d+$", first), first
        finally:
            subscriber.kill()
            run.kill()


def test_the_sample_rigs_are_listed():
    rows = TABLES["The rigs of the repository"][1:]
    listed = {name for row in rows for name in re.findall(r"`rigs/([^`]+)`", row[0])}
    on_disk = {path.name for path in (ROOT / "rigs").glob("*.yaml")}
    folders = {f"{path.name}/" for path in (ROOT / "rigs").iterdir() if path.is_dir()}
    folders -= {"bench/", "layouts/", "robots/"}
    assert listed == on_disk | {name for name in folders if name != "__pycache__/"}
