"""The command line on wrong input: one line for every mistake, exit code 2, and nothing written."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cosim.cli.command_line import all_commands
from cosim.cli.command_tree import NEEDED, USELESS
from cosim.cli.main import main
from cosim.core.growing_table import run_folder
from tests.kit.command import RIG
from tests.kit.refusals import raised
from tests.kit.rigs import controller

WORDS = ["run", "rum", "run a.yaml b.yaml", "new a.yaml", "run rig.yaml --set", "run rig.yaml --durtion 3"]
DURATIONS = ["soon", "1 kg", "nan", "0", "-3", "1e300", "1e9 min", "1 us"]
WORDS += [f"run rig.yaml --duration '{duration}'" for duration in DURATIONS]
OVERRIDES = ["controllers.hold.kpp=3", "controllers.hold.kp=high", "controllers.hold.kp=-1", "controllers.grip.kp=1"]
OVERRIDES += ["schedule.step=1 kg", "schedule.step=3e-10", "schedule.duration=1e300", "schedule.step=[", "colour=red"]
OVERRIDES += ["joints.hing.limits.upper=1", "joints.hinge.driver=sim", "kp"]
WORDS += [f"run rig.yaml --set '{override}'" for override in OVERRIDES]
# files that cannot be written, or are others already
PLACES = ["none/a.png", "folder.png", "a.gif", "a", "''", "/proc/a.png"]
WORDS += [f"run rig.yaml --plot {place}" for place in PLACES]
WORDS += [f"run rig.yaml --json {place}" for place in ("none/a.json", "folder.png", "''")]
PLACES = ["none/a.mcap", "folder.png", "''", "-", "rig.yaml", "hard.yaml", "soft.yaml"]
WORDS += [f"run rig.yaml --record {place}" for place in PLACES]
WORDS += [f"run rig.yaml --plot a.png {option} ./a.png" for option in ("--json", "--plot")]
WORDS += [f"export layout rig.yaml --for foxglove -o {place}" for place in ("rig.yaml", "none/a.json", "a.xml", ".")]
WORDS += [
    "export layout rig.yaml --for excel",
    "export layout rog.yaml --for foxglove",
    "export layout rig.yaml --for foxglove --recording",
]
# options that would be ignored, or that this rig does not have
WORDS += ["run rig.yaml --plot a.png --plot-joints hing", "run rig.yaml --plot a.png --plot-signals hinge/speed"]
WORDS += ["run rig.yaml --plot-joints hinge", "run rig.yaml --record-bus", "run rig.yaml --record a.mcap --record-bus"]
WORDS += ["run rig.yaml --plot a.png --plot-joints hinge --plot-signals hinge/effort", "run rig.yaml --shadow"]
WORDS += ["run rig.yaml --clear-faults", "run rig.yaml --clear-faults --yes --record a.mcap"]
WORDS += [f"run rig.yaml --realtime {option} foo" for option in ("--telemetry", "--control")]
WORDS += ["run rig.yaml --integrator rk5", "replay a.mcap rig.yaml", "replay a.mcap rig.yaml --bus --to a.log"]
BESIDE_BUS = ["--telemetry x", "--speed 2", "--rerun"]
WORDS += ["replay a.mcap --to a.log", *(f"replay a.mcap --bus {option}" for option in BESIDE_BUS)]
WORDS += ["analyze r --amplitude 1", "analyze r --yes", "analyze r --measure chirp --yes"]
WORDS += ["analyze r --joint a --excitation e.yaml --at=1", "derive r --graph --to latex"]
WORDS += ["identify r --excite --training 0.5", "tune feedforward r --save a.csv --from a.mcap --iterations 3"]
WORDS += ["tune gains r --on-hardware h --trial 1 --candidates 2"]
FAULTS = ["nonsense", "", "kin: drop", "kind: drop, fraction: 2", "kind: drip"]
WORDS += [f"emulate rig.yaml --fault '{fault}'" for fault in FAULTS]
# files that are no rigs
FILES = {"empty.yaml": b"# nothing\n", "tab.yaml": b"mechanism:\n\turdf: x\n", "open.yaml": b"mechanism: [\n"}
FILES |= {"list.yaml": b"- a\n", "bytes.yaml": b"\xff\xfe\x00"}
WORDS += [f"{action} {file}" for file in ("none.yaml", ".", *FILES) for action in ("run", "check")]
OVERLAYS = {"stap.yaml": b"schedule.stap: 1 ms\n"}
WORDS += [f"check rig.yaml --overlay {file}" for file in (*OVERLAYS, "empty.yaml", "list.yaml", "none.yaml")]


@pytest.mark.parametrize("words", WORDS)
def test_words(command, words, said):
    Path("folder.png").mkdir()
    Path("hard.yaml").hardlink_to("rig.yaml")
    Path("soft.yaml").symlink_to("rig.yaml")
    for file, data in (FILES | OVERLAYS).items():
        Path(file).write_bytes(data)
    before = sorted(Path().iterdir())
    (line,) = command.refuses(*shlex.split(words))
    said(line)
    assert sorted(Path().iterdir()) == before and Path("rig.yaml").read_text() == RIG


def test_the_rules_are_of_options_that_exist():
    commands = all_commands().parsers
    for rules in (NEEDED, USELESS):
        for name, of_command in rules.items():
            known = {option for action in commands[name]._actions for option in action.option_strings}
            assert {*of_command, *(other for others in of_command.values() for other in others)} <= known


BODY = "name: link, axis: [0, 1, 0], mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]"
LINK = f"mechanism: {{bodies: [{{{BODY}}}]}}\n"
MOTOR = "type: dc_motor, resistance: 1, inductance: 1, torque_constant: 1, rotor_inertia: 0"
MANY = Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8")
AGAIN = "  - {name: again, type: pid, kp: 1, ki: 0, kd: 1, joints: [hinge, elbo]}\nschedule"
RIGS = {
    "all errors together": MANY,
    "joints unknown or twice": RIG.replace("schedule", AGAIN).replace("  hinge:\n", "  hinges:\n"),
    "a key of a section": LINK + "formulation: kane\n",
    "a key of the section around": LINK.replace(BODY, f"{BODY}, formulation: kane"),
    "a key of another section": LINK + "step: 1 ms\n",
    "a link twice": f"mechanism:\n  bodies:\n  - {{{BODY}}}\n  - {{{BODY}}}\n",
    "a frame like a joint": f"mechanism:\n  bodies: [{{{BODY}}}]\n  frames: [{{name: link, link: link}}]\n",
    "an open list": f"mechanism: {{bodies: [{{{BODY}}}\nschedule: {{}}\n",
    "an open mapping": f"mechanism: {{bodies: [{{{BODY}\nschedule: {{}}\n",
    "a reserved name": LINK.replace("name: link", "name: energy"),
    "a gear without rotor": LINK + f"joints: {{link: {{actuator: {{{MOTOR}, stiffness: 100}}}}}}\n",
    "a damping alone": LINK + f"joints: {{link: {{actuator: {{{MOTOR}, damping: 1}}}}}}\n",
    "a YAML file as URDF": "mechanism: {urdf: rig.yaml}\n",
    "no URDF": "mechanism:\n  urdf: arn.urdf\n",
}
# several errors, or one
COUNTS = {"all errors together": 10, "joints unknown or twice": 3}


@pytest.mark.parametrize("rig", RIGS)
def test_rigs(command, rig, said):
    Path("rig.yaml").write_text(RIGS[rig])
    Path("arm.urdf").write_text(urdf())
    lines = command.refuses("run", "rig.yaml")
    said(lines)
    assert len(lines) == COUNTS.get(rig, 1) and all(line.startswith("rig.yaml:") for line in lines)


def test_an_impossible_inertia_is_a_warning_of_a_run(command, said):
    Path("rig.yaml").write_text(LINK.replace("[1, 1, 1]", "[1, 1, 10]") + "schedule: {duration: 0.01}\n")
    code, out, _ = command("run", "rig.yaml")
    assert code == 0
    said(out.splitlines()[0])


ROUND = 'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"'
LOOP = '<joint name="strut" type="continuous"><parent link="base"/><child link="fore"/></joint>'


def urdf(mass="1", inertia=ROUND, more=""):
    return f"""\
<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><mass value="{mass}"/><inertia {inertia}/></inertial></link>
  <link name="fore"><inertial><mass value="1"/><inertia {inertia}/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="fore"/></joint>
  {more}
</robot>
"""


ROBOTS = {
    "loop": urdf(more=LOOP),
    "negative mass": urdf(mass="-2"),
    "no mass": urdf(mass="0", inertia=ROUND.replace("1", "0")),
    "inertia": urdf(inertia=ROUND.replace('ixx="1"', 'ixx="-1"')),
    "long": "<robot name='arm'>" + " " * 4_000_000 + "</robot>",
}


@pytest.mark.parametrize("robot", ROBOTS)
def test_urdf_files_that_are_no_mechanisms(command, robot, said):
    Path("arm.urdf").write_text(ROBOTS[robot])
    Path("rig.yaml").write_text("mechanism: {urdf: arm.urdf}\n")
    said(command.refuses("run", "rig.yaml"))


def test_outputs_do_not_overwrite_the_files_of_a_rig(command):
    Path("arm.urdf").write_text(urdf())
    Path("path.csv").write_text("t,elbow\n0,0\n1,1\n")
    Path("own.py").write_text(controller("effort = ops.array([0.0])"))
    trajectory = "trajectory: {type: waypoints, file: path.csv}"
    Path("rig.yaml").write_text(f"""\
mechanism: {{urdf: arm.urdf}}
controllers:
  - {{type: own.py, joints: [shoulder]}}
  - {{type: pid, joints: [elbow], kp: 1, ki: 1, kd: 1, {trajectory}}}
""")
    for file, part in {"arm.urdf": "the URDF", "own.py": "'own.py'", "path.csv": "'path.csv'"}.items():
        before = Path(file).read_text()
        assert "must have the suffix .mcap" in command.refuses("run", "rig.yaml", "--record", file)[0]
        Path(link := f"{file}.json").hardlink_to(file)
        for words in (("run", "rig.yaml", "--json"), ("export", "layout", "rig.yaml", "--for", "foxglove", "-o")):
            assert command.refuses(*words, link) == [f"{words[-1]}: {link}: is {part} of the rig; choose another file"]
        assert Path(file).read_text() == before


def test_a_run_that_does_not_fit_the_disk(command, monkeypatch, said):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Free", (), {"free": 4 * 10**9}))
    columns = 15  # the time and the signals
    (message,) = command.refuses("run", "rig.yaml", "--duration", "1e6")
    said(message.replace(str(run_folder()), "<runs>"))
    assert f" {8 * columns} GB" in message and f" {4_000_000_000 // (8 * columns) / 1000:.10g} s" in message


def interrupted(*_):
    raise KeyboardInterrupt


def test_an_interrupt_is_a_failure_wherever_it_comes(command, monkeypatch):
    monkeypatch.setattr("cosim.rig.sections.rig_spec.read_rig", interrupted)
    assert command("run", "rig.yaml") == (1, "", ["interrupted"])


def test_ctrl_c_during_the_imports_is_an_interrupt(monkeypatch, capsys):
    """They take half a second of every start."""
    monkeypatch.setattr("builtins.__import__", interrupted)
    left = raised(SystemExit, main)
    monkeypatch.undo()
    assert left.code == 1
    assert capsys.readouterr().err == "interrupted\n"
