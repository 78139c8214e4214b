"""The command line: what it prints and writes, exit codes, and one line for every mistake."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from cosim.cli import main

RIG = """\
name: swing
description: A link is held by a PID controller.
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints:
  hinge:
    initial: {position: 10 deg}
controllers:
  - {name: hold, type: pid, kp: 50, ki: 10, kd: 5, trajectory: {type: quintic, goal: 30 deg, duration: 0.5}}
schedule: {duration: 0.4 s}
"""
URDF = """\
<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><mass value="{mass}"/><inertia {inertia}/></inertial></link>
  <link name="fore"><inertial><mass value="1"/><inertia {inertia}/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="fore"/></joint>
  {more}
</robot>
"""
ROUND = 'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"'
MINE = """\
from cosim import ops
from cosim.types import COMMAND, joint_signals, params

@params
class Params:
    pass

class Mine:
    def __init__(self, params, context):
        self.params = params
        self.inputs = joint_signals(("position",), 1)
        self.outputs = joint_signals(COMMAND, 1)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        BODY
        return {}, {name: ops.zeros(1) for name in COMMAND}

def load(params, context):
    return Mine(params, context)
"""


class Cosim:
    """The `cosim` command in this process, in a folder of its own."""

    def __init__(self, capsys, monkeypatch):
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments):
        """(exit code, stdout, lines of stderr)."""
        self.monkeypatch.setattr(sys, "argv", ["cosim", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as leave:
            code = leave.code
        out, err = self.capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err.splitlines()

    def refuses(self, *arguments):
        """The lines of stderr for wrong input, of which nothing came."""
        code, out, err = self(*arguments)
        assert (code, out) == (2, "")
        return err


@pytest.fixture
def cosim(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("rig.yaml").write_text(RIG)
    return Cosim(capsys, monkeypatch)


def urdf(mass="1", inertia=ROUND, more=""):
    Path("arm.urdf").write_text(URDF.format(mass=mass, inertia=inertia, more=more))
    Path("rig.yaml").write_text("mechanism: {urdf: arm.urdf}\n")


# --- runs that go well ------------------------------------------------------------------------------


def test_run_prints_the_table_the_energy_the_speed_and_what_was_compiled(cosim):
    code, out, err = cosim("run", "rig.yaml")
    assert (code, err) == (0, [])
    lines = out.splitlines()
    assert lines[0] == "swing  A link is held by a PID controller."
    assert re.fullmatch(r"joint +role +error RMS +error max +effort RMS +effort peak", lines[1])
    assert re.fullmatch(r"hinge +driven +[\d.]+ mrad +[\d.]+ mrad +[\d.]+ N·m +[\d.]+ N·m", lines[3])
    assert re.fullmatch(r"energy   work in \S+ J, dissipated 0 J, stored \+\S+ J, residual \S+ J \(\S+\)", lines[4])
    assert re.fullmatch(r"speed    400 ticks of 1 ms \(rk4\), [\d,]+ ticks/s, [\d,.]+ × real time", lines[5])
    assert lines[6:] == ["ran as   plant, controller hold, loop: machine code"]


def test_names_are_never_cut_and_lines_never_broken_in_a_pipe(cosim):
    name = "shoulder_lift_joint"
    text = RIG.replace("hinge", name).replace("A link is", "A link with a description of more than eighty letters is")
    Path("rig.yaml").write_text(text)
    code, out, _ = cosim("run", "rig.yaml")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 7
    assert lines[0].endswith("held by a PID controller.") and lines[3].startswith(f"{name}  driven ")
    assert max(map(len, lines[1:4])) <= 80


def test_the_files_that_were_asked_for_are_written_and_named(cosim):
    code, out, _ = cosim("run", "rig.yaml", "--plot", "a.png", "--json", "a.json", "--record", "a.mcap")
    assert code == 0
    assert out.splitlines()[-1] == "wrote    plot a.png, summary a.json, recording a.mcap"
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert Path("a.mcap").read_bytes().startswith(b"\x89MCAP")
    summary = orjson.loads(Path("a.json").read_bytes())
    assert (summary["rig"], summary["outcome"], summary["ticks"]) == ("swing", "finished", 400)


def test_the_summary_of_the_library_is_the_json_of_the_command(cosim):
    from cosim import load_rig

    code, out, err = cosim("run", "rig.yaml", "--json", "-")
    assert (code, err) == (0, [])
    written = orjson.loads(out)
    made = load_rig("rig.yaml").run().summary
    assert set(written["speed"]) == {"ticks_per_second", "real_time_factor", "real_time_factor_with_output"}
    del written["speed"], made["speed"]  # the only figures that differ from run to run
    assert written == made


def test_duration_and_overrides(cosim):
    for duration, ticks in (("50 ms", 50), ("0.02", 20), ("1 ms", 1)):
        code, out, _ = cosim("run", "rig.yaml", "--duration", duration, "--json", "-", "--set", "name=short")
        assert (code, orjson.loads(out)["ticks"], orjson.loads(out)["rig"]) == (0, ticks, "short")
    arguments = (
        "--set",
        "schedule.step=500us",
        "--set",
        "schedule.integrator=rosenbrock",
        "--set",
        "schedule.substeps=2",
    )
    code, out, _ = cosim("run", "rig.yaml", *arguments)
    assert code == 0 and "speed    800 ticks of 0.5 ms (rosenbrock, 2 substeps)," in out


def test_the_interpreter_by_option_and_by_environment(cosim, monkeypatch):
    values = []
    for arguments, environment in (((), "0"), (("--interpret",), "0"), ((), "1")):
        monkeypatch.setenv("COSIM_INTERPRET", environment)
        code, out, _ = cosim("run", "rig.yaml", "--duration", "20 ms", "--json", "-", *arguments)
        summary = orjson.loads(out)
        assert code == 0
        values.append(summary["joints"]["hinge"]["error_rms"])
        interpreted = bool(arguments) or environment == "1"
        assert (summary["compiled"] == {"everything": "Python, as asked"}) is interpreted
    assert values[1] == values[2] == pytest.approx(values[0], rel=1e-12)


def test_check_says_what_the_rig_is_without_running_it(cosim):
    code, out, err = cosim("check", "rig.yaml")
    assert (code, err) == (0, [])
    assert out.splitlines() == [
        "rig.yaml: fine",
        "  A link is held by a PID controller.",
        "  mechanism swing: 1 joint, gravity (0, 0, -9.81) m/s^2",
        "    hinge: driven by ideal, driver sim",
        "  controller hold: pid, every 1 ms",
        "  each tick of 1 ms: read → controllers → guard → write → step",
        "  step: rk4, 1 per tick; run of 0.4 s",
    ]


# --- wrong input: exit code 2 -------------------------------------------------------------------------


def test_files_that_are_no_rigs(cosim):
    Path("empty.yaml").write_text("# nothing\n")
    Path("tab.yaml").write_text("mechanism:\n\turdf: x\n")
    Path("open.yaml").write_text("mechanism: [\n")
    Path("list.yaml").write_text("- a\n")
    Path("bytes.yaml").write_bytes(b"\xff\xfe\x00")
    tab = "found character '\\t' that cannot start any token; indent with spaces"
    for file, message in {
        "none.yaml": "none.yaml: no such file",
        "empty.yaml": "empty.yaml: the file is empty; it needs at least a 'mechanism'",
        "tab.yaml": f"tab.yaml:2: broken YAML: {tab}",
        "open.yaml": "open.yaml:2: broken YAML: expected the node content, but found '<stream end>'",
        "list.yaml": "list.yaml:1: expected 'key: value' lines at the top level",
        "bytes.yaml": "bytes.yaml: is not UTF-8 text",
        ".": ".: cannot be read: Is a directory",
    }.items():
        assert cosim.refuses("run", file) == cosim.refuses("check", file) == [message]


def test_every_mistake_of_a_rig_is_told_in_one_go_at_its_line(cosim):
    Path("rig.yaml").write_text("""\
mechanism:
  gravity: [0, 0]
  bodies:
    - {name: link, joint: hinge, mass: 1 s, inertia: [1, 1, 1]}
joints:
  hinge: {encoder: {counts: 1.5}}
  hinje: {}
controllers:
  - {name: hold, type: pidd, kp: 1}
  - {type: pid, kp: a, ki: 0, kd: 1, gain: 2, joints: [hinge]}
schedule: {step: 1 V, integrator: rk5, duraton: 3}
telemetry: 5
""")
    assert cosim.refuses("run", "rig.yaml") == [
        "rig.yaml:2 mechanism.gravity: expected 3 numbers, got 2",
        "rig.yaml:4 mechanism.bodies[0].mass: unit 's' does not fit here; use kg, g, t",
        "rig.yaml:6 joints.hinge.encoder.counts: expected a whole number, got 1.5",
        "rig.yaml:9 controllers[0].type: unknown controller 'pidd'; did you mean 'pid'?",
        "rig.yaml:10 controllers[1]: unknown key 'gain'; known: kp, ki, kd, integral_limit, type, name, joints, period,"
        " trajectory",
        "rig.yaml:10 controllers[1].kp: expected a number, got 'a'",
        "rig.yaml:11 schedule: unknown key 'duraton'; did you mean 'duration'?",
        "rig.yaml:11 schedule.step: unit 'V' does not fit here; use s, ms, us, min, h",
        "rig.yaml:11 schedule.integrator: expected one of semi_implicit_euler, rk4, rosenbrock; got 'rk5'",
        "rig.yaml:12 telemetry: expected a mapping, got 5",
    ]


def test_joints_that_do_not_exist_and_joints_with_two_controllers(cosim):
    more = "  - {name: again, type: pid, kp: 1, ki: 0, kd: 1, joints: [hinge, elbo]}\n"
    Path("rig.yaml").write_text(RIG.replace("schedule", more + "schedule").replace("  hinge:\n", "  hinges:\n"))
    assert cosim.refuses("run", "rig.yaml") == [
        "rig.yaml:7 joints.hinges: unknown joint 'hinges'; did you mean 'hinge'?",
        "rig.yaml:11 controllers[1].joints[0]: joint 'hinge' is already commanded by controller 'hold' (line 10)",
        "rig.yaml:11 controllers[1].joints[1]: unknown joint 'elbo'; known: hinge",
    ]


LOOP = '<joint name="strut" type="continuous"><parent link="base"/><child link="fore"/></joint>'


LIMP = (
    "arm.urdf:{0} joint '{1}': link '{2}' can move on its own but has no inertia that resists; give it (or what"
    " hangs on it) mass, or make joint '{1}' fixed"
)
BAD = "is not positive definite (smallest eigenvalue -1 kg*m^2); check the signs and the order of its elements"


@pytest.mark.parametrize(
    ("keys", "messages"),
    [
        (
            {"more": LOOP},
            [
                "arm.urdf:7 joint 'strut': link 'fore' is the child of joints 'elbow' (line 6) and 'strut':"
                " a tree is needed; cut the loop at one of them"
            ],
        ),
        ({"mass": "-2"}, ["arm.urdf:3 link 'upper': <mass> value is negative (-2); it must be 0 or more"]),
        (
            {"mass": "0", "inertia": ROUND.replace("1", "0")},
            [LIMP.format(5, "shoulder", "upper"), LIMP.format(6, "elbow", "fore")],
        ),
        (
            {"inertia": ROUND.replace('ixx="1"', 'ixx="-1"')},
            [
                f"arm.urdf:3 link 'upper': inertia of link 'upper' {BAD}",
                f"arm.urdf:4 link 'fore': inertia of link 'fore' {BAD}",
            ],
        ),
    ],
    ids=["loop", "negative mass", "no mass", "inertia"],
)
def test_urdf_files_that_are_no_mechanisms(cosim, keys, messages):
    urdf(**keys)
    assert cosim.refuses("run", "rig.yaml") == messages


def test_a_urdf_that_is_not_there(cosim):
    urdf()
    Path("rig.yaml").write_text("mechanism:\n  urdf: arn.urdf\n")
    assert cosim.refuses("run", "rig.yaml") == [
        "rig.yaml:2 mechanism.urdf: no such file 'arn.urdf'; did you mean 'arm.urdf'?"
    ]


@pytest.mark.parametrize(
    ("duration", "message"),
    [
        ("soon", "--duration: expected a number, got 'soon'"),
        ("1 kg", "--duration: unit 'kg' does not fit here; use s, ms, us, min, h"),
        ("nan", "--duration: expected a number, got 'nan'"),
        ("0", "a duration of 0 s is shorter than one step; use a longer one"),
        ("-3", "a duration of -3 s is shorter than one step; use a longer one"),
        ("1e300", "a duration of 1e+300 s is too long; use a shorter one"),
    ],
)
def test_durations_that_are_none(cosim, duration, message):
    assert cosim.refuses("run", "rig.yaml", "--duration", duration) == [message]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("controllers.hold.kpp=3", "unknown key 'kpp'; did you mean 'kp'?"),
        ("controllers.hold.kp=high", "expected a number, got 'high'"),
        ("controllers.hold.kp=-1", "must be at least 0 N*m/rad, is -1 N*m/rad"),
        ("controllers.grip.kp=1", "no 'grip' in controllers; known: hold, 0"),
        ("schedule.step=1 kg", "unit 'kg' does not fit here; use s, ms, us, min, h"),
        ("schedule.step=3e-10", "must be at least 1e-06 s, is 3e-10 s"),
        ("schedule.duration=1e300", "must be at most 1000000000 s, is 1e+300 s"),
        (
            "colour=red",
            "unknown key 'colour'; known: mechanism, name, description, joints, controllers, schedule, telemetry",
        ),
        ("kp", "expected key=value, for example schedule.step=2ms"),
        ("schedule.step=[", "broken YAML: expected the node content, but found '<stream end>'"),
    ],
)
def test_overrides_that_do_not_fit(cosim, override, message):
    assert cosim.refuses("run", "rig.yaml", "--set", override) == [f"--set {override}: {message}"]


def test_files_that_cannot_be_written_are_refused_before_the_run(cosim):
    Path("folder.png").mkdir()
    no_folder = "there is no folder 'none'; create it or choose another"
    write = "name a file in a folder that exists and that you may write to"
    for option, file, message in (
        ("--plot", "none/a.png", f"--plot: none/a.png: {no_folder}"),
        ("--plot", "folder.png", "--plot: folder.png: cannot be written; choose another file"),
        ("--plot", "a.gif", "a.gif: cannot draw a plot as '.gif'; use png, svg, pdf"),
        ("--json", "none/a.json", f"--json: none/a.json: {no_folder}"),
        ("--json", "folder.png", "--json: folder.png: cannot be written; choose another file"),
        ("--record", "none/a.mcap", f"none/a.mcap: cannot write the recording: No such file or directory; {write}"),
        ("--record", "folder.png", f"folder.png: cannot write the recording: Is a directory; {write}"),
    ):
        assert cosim.refuses("run", "rig.yaml", option, file) == [message]
    assert sorted(path.name for path in Path().iterdir()) == ["folder.png", "rig.yaml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing argument 'rig'."),
        (["run", "rig.yaml", "--bogus"], "No such option: --bogus"),
        (["walk"], "No such command 'walk'."),
    ],
)
def test_command_lines_that_are_none(cosim, arguments, message):
    err = cosim.refuses(*arguments)
    assert err[0].startswith("Usage: ") and any(message in line for line in err)


# --- controllers of the user --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("x = u[", 2, "mine.py:18: the controller cannot be imported: SyntaxError: '[' was never closed"),
        (
            "raise RuntimeError('it is\\n        hot')",
            1,
            "rig.yaml: stopped at tick 0 (t = 0 s): controller 'mine' failed: RuntimeError: it is hot"
            " ({here}/mine.py:18)",
        ),
        (
            "u['effort']",
            1,
            "rig.yaml: stopped at tick 0 (t = 0 s): controller 'mine' failed: KeyError: 'effort' ({here}/mine.py:18)",
        ),
    ],
)
def test_a_controller_with_a_mistake_in_it(cosim, body, code, message):
    Path("rig.yaml").write_text(RIG[: RIG.index("  - {name: hold")] + "  - {type: mine.py}\n")
    Path("mine.py").write_text(MINE.replace("BODY", body))
    got, _, err = cosim("run", "rig.yaml")
    assert (got, err) == (code, [message.format(here=Path.cwd())])


def test_a_controller_that_stays_in_python_is_named_with_the_reason(cosim):
    Path("rig.yaml").write_text(
        RIG[: RIG.index("  - {name: hold")] + "  - {type: mine.py}\nschedule: {duration: 0.01}\n"
    )
    Path("mine.py").write_text(MINE.replace("BODY", "u['position'][0] > 0 or print(end='')"))
    code, out, err = cosim("run", "rig.yaml")
    assert (code, err) == (0, [])
    why = "a Python `if`, `and`, `min` or comparison chain on a traced value; use cosim.ops.where"
    assert out.splitlines()[-2:] == [
        "ran as   plant: machine code; controller mine, loop: Python",
        f"         controller mine in Python: {Path.cwd()}/mine.py:18: {why}",
    ]


# --- runs that fail: exit code 1 ------------------------------------------------------------------------


def failed(cosim, *overrides):
    """(ticks, line of stderr) of a run that fails, after a look at what it has written."""
    arguments = [word for text in overrides for word in ("--set", text)]
    code, out, err = cosim("run", "rig.yaml", "--record", "a.mcap", "--plot", "a.png", "--json", "a.json", *arguments)
    assert code == 1
    (line,) = err
    assert out.splitlines()[-1] == "wrote    plot a.png, summary a.json, recording a.mcap"
    summary = orjson.loads(Path("a.json").read_bytes())
    assert line == f"rig.yaml: {summary['outcome']}"
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    from cosim.record import read_recording

    t_ns, samples = read_recording("a.mcap")
    assert len(t_ns) == summary["ticks"] + 1 == len(samples["hinge/position"])
    return summary["ticks"], line


@pytest.mark.parametrize("override", ["controllers.hold.kd=1e9", "schedule={step: 0.5 s, duration: 1000 s}"])
def test_a_run_that_diverges_stops_at_the_first_number_that_is_none(cosim, override):
    ticks, line = failed(cosim, override)
    step = 0.5 if "step" in override else 1e-3
    assert re.fullmatch(
        rf"rig.yaml: stopped at tick {ticks} \(t = {ticks * step:.6g} s\): joint 'hinge' is not finite"
        r" \(position \S+ rad, velocity \S+ rad/s\); try a smaller schedule.step, more schedule.substeps or"
        r" schedule.integrator: rosenbrock",
        line,
    )
    assert ticks > 3


def test_a_run_that_leaves_its_limits_stops(cosim):
    ticks, line = failed(cosim, "joints.hinge.limits={upper: 11 deg}")
    place = "outside its limits -inf to 0.191986 rad; change the trajectory or joints.hinge.limits"
    assert re.fullmatch(
        rf"rig.yaml: stopped at tick {ticks} \(t = \S+ s\): joint 'hinge' is at 0.19\d+ rad, {place}", line
    )
    ticks, line = failed(cosim, "joints.hinge.limits={velocity: 1 deg/s}")
    what = r"moves at -?0.01\d+ rad/s, above its limit of 0.0174533 rad/s"
    mend = "slow the trajectory down, soften the controller or change joints.hinge.limits"
    assert re.fullmatch(rf"rig.yaml: stopped at tick {ticks} \(t = \S+ s\): joint 'hinge' {what}; {mend}", line)


# --- as a program of its own --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["check", "rig.yaml"], 0, ""),
        (["run", "none.yaml"], 2, "none.yaml: no such file\n"),
        (["run", "rig.yaml", "--set", "joints.hinge.limits={upper: 11 deg}"], 1, "rig.yaml: stopped at tick "),
    ],
)
def test_the_program_leaves_with_the_code_of_what_happened(cosim, arguments, code, message):
    done = subprocess.run(
        [sys.executable, "-c", "from cosim.cli import main; main()", *arguments], capture_output=True, text=True
    )
    assert done.returncode == code
    assert done.stderr.startswith(message) and bool(done.stderr) == bool(message)
    assert "Traceback" not in done.stderr
