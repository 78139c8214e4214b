"""No command replaces a file that its rig uses: read or named by it, by what it imports, or given beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kit.samples import FOLDER

MECHANISMS = FOLDER / "mechanisms"
SKATER = "skater.py"  # the constraint of skate.yaml
FIX = "of the rig; choose another file"


@pytest.fixture
def skate(command):
    for name in ("skate.yaml", SKATER):
        shutil.copy(MECHANISMS / name, name)
    return command


def spared(command, file, message, *words):
    """Whether the command refuses, and leaves the file as it was."""
    before = Path(file).read_bytes()
    assert command.refuses(*words) == [message]
    assert Path(file).read_bytes() == before


def test_derived_equations_spare_the_constraint_of_the_rig(skate):
    said = f"--equations: {SKATER}: is '{SKATER}' {FIX}"
    spared(skate, SKATER, said, "derive", "skate.yaml", SKATER, "--equations", "--to", "python")


def test_derived_equations_spare_a_controller_and_what_it_imports(skate, monkeypatch):
    """The section `mechanism` alone is derived, but the rig has more."""
    monkeypatch.syspath_prepend(Path.cwd())
    Path("gains_of_hand.py").write_text("KP = 3.0\n")
    Path("hand.py").write_text(f"import gains_of_hand\n{HAND}")
    Path("rig.yaml").write_text(
        Path("rig.yaml").read_text().replace("type: pid, kp: 50, ki: 10, kd: 5", "type: hand.py")
    )
    for file, part in {"hand.py": "'hand.py'", "gains_of_hand.py": "a file"}.items():
        said = f"--equations: {file}: is {part} {FIX}"
        spared(skate, file, said, "derive", "rig.yaml", file, "--equations", "--to", "python")


HAND = """
from cosim import ops
from cosim.types import params


@params
class Params:
    pass


def load(params, joints):
    raise ValueError("never reached, as the rig is only read")
"""


@pytest.mark.parametrize("link", [SKATER, "skate.yaml"])
@pytest.mark.parametrize(
    ("options", "option", "target"),
    [
        (["other.png", "--graph"], "--graph", "other.png"),
        (["other.txt", "--equations"], "--equations", "other.txt"),
        (["--compare", "--json", "other.json"], "--json", "other.json"),
    ],
)
def test_links_to_files_of_the_rig_are_followed(skate, link, options, option, target):
    Path(target).hardlink_to(link)
    part = "the rig itself" if link == "skate.yaml" else f"'{SKATER}' of the rig"
    spared(skate, link, f"{option}: {target}: is {part}; choose another file", "derive", "skate.yaml", *options)


def test_a_picture_of_bond_graphs_spares_the_files_of_the_rig(skate):
    Path("a.png").hardlink_to(SKATER)
    spared(skate, SKATER, f"--bondgraph: a.png: is '{SKATER}' {FIX}", "derive", "skate.yaml", "a.png", "--bondgraph")


def test_derived_equations_spare_the_files_of_a_mounted_rig(skate):
    words = "--equations", "--to", "python", "--mount", "skate.yaml", "--on", "link"
    spared(skate, SKATER, f"--equations: {SKATER}: is '{SKATER}' {FIX}", "derive", "rig.yaml", SKATER, *words)
    Path("a.py").hardlink_to("skate.yaml")
    said = "--equations: a.py: is the manipulator of --mount; choose another file"
    spared(skate, "skate.yaml", said, "derive", "rig.yaml", "a.py", *words)


def test_derived_equations_spare_what_a_robot_file_includes(command):
    Path("arm.xacro").write_text(f'{XACRO}<xacro:include filename="link.txt"/></robot>')
    Path("link.txt").write_text(f"{XACRO}{LINKS}</robot>")
    spared(
        command, "link.txt", f"--equations: link.txt: is a file {FIX}", "derive", "arm.xacro", "link.txt", "--equations"
    )


XACRO = '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">'
LINKS = """\
<link name="ground"/><link name="bar"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="ground"/><child link="bar"/><axis xyz="0 1 0"/></joint>
"""


def test_a_file_of_no_rig_is_replaced(skate):
    Path("old.py").write_text("notes")
    code, out, _ = skate("derive", "skate.yaml", "old.py", "--equations", "--to", "python")
    assert (code, out.splitlines()[-1]) == (0, "wrote    equations old.py")


def test_a_rig_with_a_mistake_is_spared_too(skate):
    text = Path("skate.yaml").read_text()
    Path("skate.yaml").write_text(f"{text}\nschedul: 3\n")
    said = f"--equations: {SKATER}: is '{SKATER}' {FIX}"
    spared(skate, SKATER, said, "derive", "skate.yaml", SKATER, "--equations", "--to", "python")


# --- overlays and tables ---


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["run", "--json", "gains.json"], "--json"),
        (["analyze", "--json", "gains.json"], "--json"),
        (["layout", "--for", "foxglove", "-o", "gains.json"], "-o"),
    ],
)
def test_overlays_are_spared(command, words, option):
    Path("gains.json").write_text('{"controllers.hold.kp": 40}')
    name, *options = words
    said = f"{option}: gains.json: is an overlay {FIX}"
    spared(command, "gains.json", said, name, "rig.yaml", "--overlay", "gains.json", *options)


def test_experiments_spare_overlays(command):
    Path("gains.yaml").write_text("controllers.hold.kp: 40\n")
    words = "rig.yaml", "--overlay", "gains.yaml"
    joint = "--joint", "hinge", "--amplitude", "1"
    said = f"--excitation: gains.yaml: is an overlay {FIX}"
    spared(command, "gains.yaml", said, "analyze", *words, *joint, "--excitation", "gains.yaml")


def test_identification_spares_overlays_and_files_of_the_rig(command):
    Path("gains.yaml").write_text("controllers.hold.kp: 40\n")
    Path("rig_motion.yaml").write_text("controllers.hold.kp: 40\n")
    words = "identify", "rig.yaml", "--overlay"
    said = f"-o: gains.yaml: is an overlay {FIX}"
    spared(command, "gains.yaml", said, *words, "gains.yaml", "F.mcap", "-o", "gains.yaml")
    said = f"the overlay: rig_motion.yaml: is an overlay {FIX}"
    spared(command, "rig_motion.yaml", said, *words, "rig_motion.yaml", "--excite")


def test_learning_and_designed_motions_spare_the_table_of_the_rig(command):
    Path("path.csv").write_text("t,hinge\n0,0\n1,1\n")
    trajectory = "trajectory: {type: waypoints, file: path.csv}"
    rig = Path("rig.yaml").read_text().replace("trajectory: {type: quintic, goal: 30 deg, duration: 0.5}", trajectory)
    Path("rig.yaml").write_text(rig)
    said = f"path.csv: is 'path.csv' {FIX}"
    spared(command, "path.csv", f"--save: {said}", "learn", "rig.yaml", "--save", "path.csv")
    spared(command, "path.csv", f"-o: {said}", "identify", "rig.yaml", "--excite", "-o", "path.csv")


def test_a_session_spares_overlays_and_the_rig(command):
    Path("gains.yaml").write_text("controllers.hold.kp: 40\n")
    words = "--parameter", "hold.kp=1..9", "--minimise", "hinge.error.rms", "--trials", "2", "--session", "."
    said = f"--session: gains.yaml: is an overlay {FIX}"
    spared(command, "gains.yaml", said, "tune", "rig.yaml", "--overlay", "gains.yaml", *words)
    shutil.copy("rig.yaml", "gains.yaml")
    said = f"--session: gains.yaml: is the file {FIX}"
    spared(command, "gains.yaml", said, "tune", "gains.yaml", *words)
