"""No command replaces a file that its rig uses: read or named by it, by what it imports, or given beside it."""

import shutil
from pathlib import Path

import pytest

from tests.kit.samples import FOLDER

MECHANISMS = FOLDER / "mechanisms"
SKATER = "skater.py"  # the constraint of skate.yaml
HAND = """
from cosim.plugin import ops
from cosim.plugin import params


@params
class Params:
    pass


def load(params, joints):
    raise ValueError("never reached, as the rig is only read")
"""
XACRO = '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">'
LINKS = """\
<link name="ground"/><link name="bar"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="ground"/><child link="bar"/><axis xyz="0 1 0"/></joint>
"""
PYTHON = "--equations", "--to", "python"
TUNED = "--parameter", "hold.kp=1..9", "--minimise", "hinge.error.rms", "--trials", "2", "--session", "."


@pytest.fixture
def spared(command, said):
    """Whether the command refuses, and leaves the file as it was."""
    for name in ("skate.yaml", SKATER):
        shutil.copy(MECHANISMS / name, name)

    def check(file, *words):
        before = Path(file).read_bytes()
        said(command.refuses(*words))
        assert Path(file).read_bytes() == before

    return check


def test_derived_equations_spare_the_constraint_of_the_rig(spared):
    spared(SKATER, "derive", "skate.yaml", SKATER, *PYTHON)
    Path("a.png").hardlink_to(SKATER)  # a picture of bond graphs, too
    spared(SKATER, "derive", "skate.yaml", "a.png", "--bondgraph")
    # and the inputs of a rig with a mistake
    text = Path("skate.yaml").read_text()
    Path("skate.yaml").write_text(f"{text}\nschedul: 3\n")
    spared(SKATER, "derive", "skate.yaml", SKATER, *PYTHON)


def test_derived_equations_spare_a_controller_and_what_it_imports(spared, monkeypatch):
    """The section `mechanism` alone is derived, but the rig has more."""
    monkeypatch.syspath_prepend(Path.cwd())
    Path("gains_of_hand.py").write_text("KP = 3.0\n")
    Path("hand.py").write_text(f"import gains_of_hand\n{HAND}")
    Path("rig.yaml").write_text(
        Path("rig.yaml").read_text().replace("type: pid, kp: 50, ki: 10, kd: 5", "type: hand.py")
    )
    for file in ("hand.py", "gains_of_hand.py"):
        spared(file, "derive", "rig.yaml", file, *PYTHON)


@pytest.mark.parametrize("link", [SKATER, "skate.yaml"])
@pytest.mark.parametrize(
    "options",
    [("other.png", "--graph"), ("other.txt", "--equations"), ("--compare", "--json", "other.json")],
    ids=["graph", "equations", "json"],
)
def test_links_to_files_of_the_rig_are_followed(spared, link, options):
    Path(next(word for word in options if word.startswith("other"))).hardlink_to(link)
    spared(link, "derive", "skate.yaml", *options)


def test_derived_equations_spare_the_files_of_a_mounted_rig(spared):
    words = *PYTHON, "--mount", "skate.yaml", "--on", "link"
    spared(SKATER, "derive", "rig.yaml", SKATER, *words)
    Path("a.py").hardlink_to("skate.yaml")
    spared("skate.yaml", "derive", "rig.yaml", "a.py", *words)


def test_derived_equations_spare_what_a_robot_file_includes(spared):
    Path("arm.xacro").write_text(f'{XACRO}<xacro:include filename="link.txt"/></robot>')
    Path("link.txt").write_text(f"{XACRO}{LINKS}</robot>")
    spared("link.txt", "derive", "arm.xacro", "link.txt", "--equations")


def test_a_file_of_no_rig_is_replaced(spared, command):
    Path("old.py").write_text("notes")
    code, out, _ = command("derive", "skate.yaml", "old.py", *PYTHON)
    assert (code, out.splitlines()[-1]) == (0, "wrote    equations old.py")


# --- overlays and tables ---

OVERLAY = "rig.yaml", "--overlay", "gains.yaml"


@pytest.mark.parametrize(
    "words",
    [
        ("run", "rig.yaml", "--overlay", "gains.json", "--json", "gains.json"),
        ("analyze", "rig.yaml", "--overlay", "gains.json", "--json", "gains.json"),
        ("export", "layout", "rig.yaml", "--overlay", "gains.json", "--for", "foxglove", "-o", "gains.json"),
        ("analyze", *OVERLAY, "--joint", "hinge", "--amplitude", "1", "--excitation", "gains.yaml"),
        ("identify", *OVERLAY, "F.mcap", "-o", "gains.yaml"),
        ("identify", "rig.yaml", "--overlay", "rig_motion.yaml", "--excite"),
        ("tune", "gains", *OVERLAY, *TUNED),
    ],
    ids=lambda words: f"{words[0]} {words[-2]}",
)
def test_overlays_are_spared(spared, words):
    Path("gains.json").write_text('{"controllers.hold.kp": 40}')
    for name in ("gains.yaml", "rig_motion.yaml"):
        Path(name).write_text("controllers.hold.kp: 40\n")
    spared(next(word for word in words if "." in word and word.startswith(("gains", "rig_"))), *words)


def test_a_session_spares_its_rig(spared):
    shutil.copy("rig.yaml", "gains.yaml")
    spared("gains.yaml", "tune", "gains", "gains.yaml", *TUNED)


def test_learning_and_designed_motions_spare_the_table_of_the_rig(spared):
    Path("path.csv").write_text("t,hinge\n0,0\n1,1\n")
    trajectory = "trajectory: {type: waypoints, file: path.csv}"
    rig = Path("rig.yaml").read_text().replace("trajectory: {type: quintic, goal: 30 deg, duration: 0.5}", trajectory)
    Path("rig.yaml").write_text(rig)
    spared("path.csv", "tune", "feedforward", "rig.yaml", "--save", "path.csv")
    spared("path.csv", "identify", "rig.yaml", "--excite", "-o", "path.csv")
