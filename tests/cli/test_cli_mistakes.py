"""The command line on wrong input: one line for every mistake, exit code 2, and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.cli.main import main
from cosim.output.run_folder import run_folder
from tests.kit.rigs import controller

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


def urdf(mass="1", inertia=ROUND, more=""):
    Path("arm.urdf").write_text(URDF.format(mass=mass, inertia=inertia, more=more))
    Path("rig.yaml").write_text("mechanism: {urdf: arm.urdf}\n")


def test_files_that_are_no_rigs(command):
    Path("empty.yaml").write_text("# nothing\n")
    Path("tab.yaml").write_text("mechanism:\n\turdf: x\n")
    Path("open.yaml").write_text("mechanism: [\n")
    Path("list.yaml").write_text("- a\n")
    Path("bytes.yaml").write_bytes(b"\xff\xfe\x00")
    tab = "found character '\\t' that cannot start any token; indent with spaces"
    for file, message in {
        "none.yaml": "none.yaml: no such file; check the path",
        "empty.yaml": "empty.yaml: the file is empty; it needs at least a 'mechanism'",
        "tab.yaml": f"tab.yaml:2: broken YAML: {tab}",
        "open.yaml": "open.yaml:2: broken YAML: expected the node content, but found '<stream end>'",
        "list.yaml": "list.yaml:1: expected 'key: value' lines at the top level",
        "bytes.yaml": "bytes.yaml: is UTF-16 text; save it as UTF-8",
        ".": ".: is a folder; give the file of a rig",
    }.items():
        assert command.refuses("run", file) == command.refuses("check", file) == [message]


def test_all_errors_of_a_rig_are_reported_together_with_their_lines(command):
    Path("rig.yaml").write_text("""\
mechanism:
  gravity: [0, 0]
  bodies:
    - {name: link, joint: hinge, mass: 1 s, inertia: [1, 1, 1]}
joints:
  hinge: {encoder: {cpr: 1.5}}
  hinje: {}
controllers:
  - {name: hold, type: pidd, kp: 1}
  - {type: pid, kp: a, ki: 0, kd: 1, gain: 2, joints: [hinge]}
schedule: {step: 1 V, integrator: rk5, duraton: 3}
telemetry: 5
""")
    assert command.refuses("run", "rig.yaml") == [
        "rig.yaml:2 mechanism.gravity: expected 3 numbers, got 2",
        "rig.yaml:4 mechanism.bodies[0].mass: unit 's' does not fit here; use kg, g, t",
        "rig.yaml:6 joints.hinge.encoder.cpr: expected a whole number, got 1.5",
        "rig.yaml:9 controllers[0].type: unknown controller 'pidd'; did you mean 'pid'?",
        "rig.yaml:10 controllers[1]: unknown key 'gain'; known: kp, ki, kd, integral_limit, tracking_time,"
        " derivative_filter, position_weight, velocity_weight, type, name, joints, period, phase, deadline, priority,"
        " trajectory, fallback, filters, modes",
        "rig.yaml:10 controllers[1].kp: expected a number, got 'a'",
        "rig.yaml:11 schedule: unknown key 'duraton'; did you mean 'duration'?",
        "rig.yaml:11 schedule.step: unit 'V' does not fit here; use s, ms, us, min, h",
        "rig.yaml:11 schedule.integrator: expected one of semi_implicit_euler, rk4, rosenbrock, rodas4, multirate;"
        " got 'rk5'",
        "rig.yaml:12 telemetry: expected a mapping, got 5",
    ]


def test_joints_that_do_not_exist_and_joints_with_two_controllers(command):
    more = "  - {name: again, type: pid, kp: 1, ki: 0, kd: 1, joints: [hinge, elbo]}\n"
    Path("rig.yaml").write_text(command.rig.replace("schedule", more + "schedule").replace("  hinge:\n", "  hinges:\n"))
    assert command.refuses("run", "rig.yaml") == [
        "rig.yaml:7 joints.hinges: unknown joint 'hinges'; did you mean 'hinge'?",
        "rig.yaml:11 controllers[1].joints[0]: joint 'hinge' is already commanded by controller 'hold' (line 10)",
        "rig.yaml:11 controllers[1].joints[1]: unknown joint 'elbo'; known: hinge",
    ]


LOOP = '<joint name="strut" type="continuous"><parent link="base"/><child link="fore"/></joint>'


LIMP = (
    "arm.urdf:{0} joint '{1}': link '{2}' can move but has no inertia against the motion; give it or its"
    " descendants mass, or make joint '{1}' fixed"
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
                f"arm.urdf:3 link 'upper': the inertia {BAD}",
                f"arm.urdf:4 link 'fore': the inertia {BAD}",
            ],
        ),
    ],
    ids=["loop", "negative mass", "no mass", "inertia"],
)
def test_urdf_files_that_are_no_mechanisms(command, keys, messages):
    urdf(**keys)
    assert command.refuses("run", "rig.yaml") == messages


def test_files_that_are_no_urdf(command):
    Path("rig.yaml").write_text("mechanism: {urdf: rig.yaml}\n")
    assert command.refuses("check", "rig.yaml") == [
        "rig.yaml:1 mechanism.urdf: 'rig.yaml' is YAML, a robot file is XML; name a URDF, xacro or MJCF file"
    ]
    Path("arm.urdf").write_text("<robot name='arm'>" + " " * 4_000_000 + "</robot>")
    Path("rig.yaml").write_text("mechanism: {urdf: arm.urdf}\n")
    assert command.refuses("check", "rig.yaml") == [
        "rig.yaml:1 mechanism.urdf: 'arm.urdf' has 4 MB, a robot file has at most 3 MB; take out what is no link and no"
        " joint"
    ]


def test_a_urdf_that_is_not_there(command):
    urdf()
    Path("rig.yaml").write_text("mechanism:\n  urdf: arn.urdf\n")
    assert command.refuses("run", "rig.yaml") == [
        "rig.yaml:2 mechanism.urdf: no such file 'arn.urdf'; did you mean 'arm.urdf'?"
    ]


@pytest.mark.parametrize(
    ("duration", "message"),
    [
        ("soon", "--duration: expected a number, got 'soon'"),
        ("1 kg", "--duration: unit 'kg' does not fit here; use s, ms, us, min, h"),
        ("nan", "--duration: expected a number, got 'nan'"),
        ("0", "--duration: expected 1 us to 1e9 s, got '0'"),
        ("-3", "--duration: expected 1 us to 1e9 s, got '-3'"),
        ("1e300", "--duration: expected 1 us to 1e9 s, got '1e300'"),
        ("1e9 min", "--duration: expected 1 us to 1e9 s, got '1e9 min'"),
        ("1 us", "duration: 1e-06 s is shorter than one step; use a longer one"),
    ],
)
def test_durations_that_are_none(command, duration, message):
    assert command.refuses("run", "rig.yaml", "--duration", duration) == [message]


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
            "unknown key 'colour'; known: mechanism, name, description, joints, drivers, emulator, scenario,"
            " controllers, parts, couplings, events, guard, schedule, telemetry, recording, tuning, keep",
        ),
        ("joints.hing.limits.upper=1", "unknown joint 'hing'; did you mean 'hinge'?"),
        (
            "joints.hinge.driver=sim",
            "unknown key 'driver'; known: actuator, encoder, initial, limits, prescribed, latched, stops, friction,"
            " cogging",
        ),
        ("kp", "expected key=value, for example schedule.step=2ms"),
        ("schedule.step=[", "broken YAML: expected the node content, but found '<stream end>'"),
    ],
)
def test_overrides_that_do_not_fit(command, override, message):
    assert command.refuses("run", "rig.yaml", "--set", override) == [f"--set {override}: {message}"]


def test_files_that_cannot_be_written_are_refused_before_the_run(command):
    Path("folder.png").mkdir()
    no_folder = "there is no folder 'none'; create it or choose another"
    for option, file, message in (
        ("--plot", "none/a.png", f"--plot: none/a.png: {no_folder}"),
        ("--plot", "folder.png", "--plot: folder.png: is a folder; name a file in it"),
        ("--plot", "a.gif", "--plot: a.gif: cannot draw a plot as '.gif'; use .png, .svg, .pdf"),
        ("--json", "none/a.json", f"--json: none/a.json: {no_folder}"),
        ("--json", "folder.png", "--json: folder.png: is a folder; name a file in it"),
        ("--record", "none/a.mcap", f"--record: none/a.mcap: {no_folder}"),
        ("--record", "folder.png", "--record: folder.png: is a folder; name a file in it"),
        ("--plot", "a", "--plot: a: no suffix; use .png, .svg, .pdf"),
        ("--plot", "", "--plot: '' is no file name; name a file"),
        ("--record", "", "--record: '' is no file name; name a file"),
        ("--json", "", "--json: '' is no file name; name a file"),
        ("--record", "-", "--record: '-' is no file name; name a file"),
        (
            "--plot",
            "/proc/a.png",
            "--plot: /proc/a.png: cannot be written: No such file or directory; choose another file",
        ),
    ):
        assert command.refuses("run", "rig.yaml", option, file) == [message]
    assert sorted(path.name for path in Path().iterdir()) == ["folder.png", "rig.yaml"]


def test_an_interrupt_is_a_failure_wherever_it_comes(command, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("cosim.rig.sections.rig_spec.read_rig", interrupted)
    code, out, err = command("run", "rig.yaml")
    assert (code, out, err) == (1, "", ["interrupted"])


def test_outputs_do_not_overwrite_the_rig_or_each_other(command):
    before = Path("rig.yaml").read_text()
    assert command.refuses("run", "rig.yaml", "--record", "rig.yaml") == [
        "--record: rig.yaml: is the rig itself; choose another file"
    ]
    assert command.refuses("run", "rig.yaml", "--plot", "a.png", "--json", "./a.png") == [
        "--json: ./a.png: is the file of --plot; choose another file"
    ]
    assert command.refuses("run", "rig.yaml", "--plot", "a.png", "--plot", "./a.png") == [
        "--plot: ./a.png: is the file of --plot; choose another file"
    ]
    Path("hard.yaml").hardlink_to("rig.yaml")
    Path("soft.yaml").symlink_to("rig.yaml")
    for link in ("hard.yaml", "soft.yaml"):
        assert command.refuses("run", "rig.yaml", "--record", link) == [
            f"--record: {link}: is the rig itself; choose another file"
        ]
    assert Path("rig.yaml").read_text() == before


def test_outputs_do_not_overwrite_the_files_of_a_rig(command):
    urdf()
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
        assert command.refuses("run", "rig.yaml", "--record", file) == [
            f"--record: {file}: the file must have the suffix .mcap; choose another name"
        ]
        Path(link := f"{file}.json").hardlink_to(file)
        for words in (("run", "rig.yaml", "--json"), ("layout", "rig.yaml", "--for", "foxglove", "-o")):
            assert command.refuses(*words, link) == [f"{words[-1]}: {link}: is {part} of the rig; choose another file"]
        assert Path(file).read_text() == before


BODY = "name: link, axis: [0, 1, 0], mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"mechanism: {{bodies: [{{{BODY}}}]}}\nformulation: kane\n",
            "rig.yaml:2: unknown key 'formulation'; it is a key of the section 'mechanism'",
        ),
        (
            f"mechanism: {{bodies: [{{{BODY}, formulation: kane}}]}}\n",
            "rig.yaml:1 mechanism.bodies[0]: unknown key 'formulation'; it is a key of the section 'mechanism'",
        ),
        (
            f"mechanism: {{bodies: [{{{BODY}}}]}}\nstep: 1 ms\n",
            "rig.yaml:2: unknown key 'step'; it is a key of the section 'schedule'",
        ),
        (
            f"mechanism:\n  bodies:\n  - {{{BODY}}}\n  - {{{BODY}}}\n",
            "rig.yaml:4 mechanism.bodies[1]: link 'link' exists already (line 3); names must be unique",
        ),
        (
            f"mechanism:\n  bodies: [{{{BODY}}}]\n  frames: [{{name: link, link: link}}]\n",
            "rig.yaml:3 mechanism.frames[0]: frame 'link' has the name of a joint (line 2); names must be unique",
        ),
        (
            f"mechanism: {{bodies: [{{{BODY}}}\nschedule: {{}}\n",
            "rig.yaml:2: broken YAML: expected ',' or ']', but got '<scalar>'; end the list before with ']'",
        ),
        (
            f"mechanism: {{bodies: [{{{BODY}\nschedule: {{}}\n",
            "rig.yaml:2: broken YAML: expected ',' or '}', but got '<scalar>'; end the mapping before with '}'",
        ),
    ],
)
def test_keys_names_and_brackets_in_the_wrong_place(command, text, message):
    Path("rig.yaml").write_text(text)
    assert command.refuses("run", "rig.yaml") == [message]


def test_an_impossible_inertia_is_a_warning_of_a_run(command):
    body = BODY.replace("inertia: [1, 1, 1]", "inertia: [1, 1, 10]")
    Path("rig.yaml").write_text(f"mechanism: {{bodies: [{{{body}}}]}}\nschedule: {{duration: 0.01}}\n")
    code, out, _ = command("run", "rig.yaml")
    assert (code, out.splitlines()[0]) == (
        0,
        "warning: rig.yaml:1 mechanism.bodies[0].inertia: the inertia is physically impossible: of its principal"
        " moments 1, 1, 10 kg*m^2 the largest exceeds the sum of the others",
    )


def test_joints_may_not_take_the_names_of_sections(command):
    Path("rig.yaml").write_text("mechanism: {bodies: [{name: energy, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}]}\n")
    assert command.refuses("run", "rig.yaml") == [
        "rig.yaml:1 mechanism: joint 'energy': the name is reserved for the energies of the rig; rename the joint"
    ]


@pytest.mark.parametrize(
    ("actuator", "message"),
    [
        ("stiffness: 100", "an elastic gear needs a rotor_inertia above 0; set it, or remove stiffness"),
        ("damping: 1", "damping is that of an elastic gear; give stiffness too, or leave damping out"),
    ],
)
def test_gears_that_cannot_be(command, actuator, message):
    motor = "type: dc_motor, resistance: 1, inductance: 1, torque_constant: 1, rotor_inertia: 0"
    Path("rig.yaml").write_text(f"""\
mechanism: {{bodies: [{{name: link, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}}]}}
joints: {{link: {{actuator: {{{motor}, {actuator}}}}}}}
""")
    assert command.refuses("run", "rig.yaml") == [f"rig.yaml:2 joints.link.actuator: {message}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "cosim run: the following arguments are required: rig; see cosim run --help"),
        (
            ["run", "rig.yaml", "--durtion", "3"],
            "cosim run: there is no option '--durtion'; did you mean '--duration'?; see cosim run --help",
        ),
        (["rum"], "cosim: there is no command 'rum'; did you mean 'run'?; see cosim --help"),
        (["run", "a.yaml", "b.yaml"], "cosim run: there is no place for the argument 'b.yaml'; see cosim run --help"),
        (["new", "a.yaml"], "cosim new: the following arguments are required: robot; see cosim new --help"),
        (["run", "rig.yaml", "--set"], "cosim run: argument --set: expected one argument; see cosim run --help"),
    ],
)
def test_command_lines_that_are_none(command, arguments, message):
    assert command.refuses(*arguments) == [message]


FAULT = "--fault: expected keys and values, as in 'kind: drop, fraction: 0.1', got"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("nonsense", f"{FAULT} 'nonsense'"),
        ("", f"{FAULT} ''"),
        ("kin: drop", f"{FAULT} 'kin: drop'"),
        ("kind: drop, fraction: 2", "--fault 'kind: drop, fraction: 2': must be at most 1, is 2"),
        ("kind: drip", "--fault: no kind of fault 'drip'; did you mean 'drop'?"),
    ],
)
def test_faults_that_are_none(command, fault, message):
    assert command.refuses("emulate", "rig.yaml", "--fault", fault) == [message]


def test_ctrl_c_during_the_imports_is_an_interrupt(monkeypatch, capsys):
    """They take half a second of every start."""

    def interrupted(name, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.__import__", interrupted)
    with pytest.raises(SystemExit) as left:
        main()
    monkeypatch.undo()
    assert left.value.code == 1
    assert capsys.readouterr().err == "interrupted\n"


def test_a_run_that_does_not_fit_the_disk(command, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Free", (), {"free": 4 * 10**9}))
    (message,) = command.refuses("run", "rig.yaml", "--duration", "1e6")
    columns = 15  # the time and the signals
    assert message == (
        f"duration: 1,000,000,001 ticks need {8 * columns} GB, the disk of {run_folder()} has 4 GB;"
        f" use at most {4_000_000_000 // (8 * columns) / 1000:.10g} s, or keep less with keep.every, keep.signals or"
        " keep.last"
    )
