"""The command line: what it prints and writes, and the exit codes of runs that end well or badly."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from cosim import load_rig
from cosim.cli.run_summary import bus_line, speed_text
from cosim.core.recordings.reader import read_recording
from cosim.rig.run.run_warnings import step_error_warnings
from tests.kit.rigs import controller


def test_run_prints_the_table_the_energy_the_speed_and_what_was_compiled(command):
    out = command.prints("run", "rig.yaml")
    lines = out.splitlines()
    assert lines[0] == "swing  A link is held by a PID controller."
    assert re.fullmatch(r"joint +role +error RMS +error max +effort RMS +effort peak", lines[1])
    assert re.fullmatch(r"hinge +actuated +[\d.]+ mrad +[\d.]+ mrad +[\d.]+ N·m +[\d.]+ N·m", lines[3])
    assert re.fullmatch(r"energy   work in \S+ J, dissipated 0 J, stored \+\S+ J, residual \S+ J \(\S+\)", lines[4])
    assert re.fullmatch(r"speed    400 ticks of 1 ms \(rk4\), [\d,]+ ticks/s, [\d,.]+ × real time", lines[5])
    assert lines[6:] == ["engine   plant, controller hold, loop: compiled"]


def test_a_step_whose_estimated_error_is_too_large_is_reported_with_its_joint(rig_of, said):
    settings = "schedule.integrator=rodas4", "schedule.duration=0.1"
    coarse, fine = (
        rig_of(PENDULUM, *settings, f"schedule.tolerance={tolerance}").run().summary for tolerance in (1e-9, 0.1)
    )
    assert step_error_warnings(fine) == []
    error, diverged = coarse["step_error"], {"max": 1e300, "joint": "b", "substeps_needed": 10**75}
    for given in (error, diverged):
        said(step_error_warnings(coarse | {"step_error": given}))
    (line,) = step_error_warnings(coarse)
    assert f" {error['max']:.3g} times" in line and f"substeps: {error['substeps_needed']} or auto" in line
    assert coarse["step_count"] is None
    chosen = rig_of(PENDULUM, *settings, "schedule.tolerance=1e-9", "schedule.substeps=auto").run().summary
    count = chosen["step_count"]
    assert chosen["step_error"] is None and count["max"] >= count["mean"] > 1.0
    substeps = f"{count['mean']:.3g} substeps on average, {count['max']} at most"
    assert speed_text(chosen).startswith(f"100 ticks of 1 ms (rodas4, {substeps}), ")


PENDULUM = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: a, mass: 9 kg, com: [0.2, 0, 0], inertia: [0.1, 0.1, 0.1]}
    - {name: b, mass: 0.1 kg, com: [0.1, 0, 0], inertia: [1e-4, 1e-4, 1e-4], origin: {xyz: [0.4, 0, 0]}}
joints: {b: {initial: {velocity: 20}}}
"""


def test_the_speed_line_of_a_real_time_run_has_no_speed():
    summary = {"timing": {}, "speed": {}, "ticks": 1, "step_s": 2e-3, "integrator": "rk4", "substeps": 1}
    assert speed_text(summary | {"step_count": None}) == "1 tick of 2 ms (rk4)"


def test_nouns_after_1_are_singular(said):
    fields = [{"joint": "a", "saturated": 1, "resolution": 0.0}, {"joint": "b", "saturated": 2, "resolution": 0.0}]
    counts = {"sent": 2, "received": 3, "errors": 1, "unsent": 1, "bus_load": 0.1, "bus_load_estimated": 0.2}
    said(bus_line({"driver": "arm", "connection": "can0", "feedforward": fields} | counts))


def test_the_motion_of_passive_joints_is_reported(command):
    Path("rig.yaml").write_text("""\
mechanism: {bodies: [{name: link, axis: [0, 1, 0], mass: 1, com: [0, 0, -1]}]}
joints: {link: {initial: {position: 30 deg}}}
schedule: {duration: 3}
""")
    code, out, _ = command("run", "rig.yaml")
    assert code == 0
    heading, _, row = out.splitlines()[1:4]
    assert re.fullmatch(r"joint +role +min +max +top speed", heading)
    assert re.fullmatch(r"link +passive +-523\.6 mrad +523\.6 mrad +1\.6\d* rad/s", row)


def test_beside_tracked_joints_those_without_a_reference_show_their_motion(command):
    Path("rig.yaml").write_text("""\
mechanism:
  bodies:
    - {name: slide, joint: rail, type: prismatic, axis: [0, 0, 1], mass: 1}
    - {name: link, joint: hinge, parent: slide, axis: [0, 0, 1], mass: 1, inertia: [0.1, 0.1, 0.1]}
controllers: [{type: pd_gravity, joints: [hinge], kp: 10, kd: 2, trajectory: {type: quintic, goal: -1, duration: 1}}]
schedule: {duration: 1}
""")
    code, out, _ = command("run", "rig.yaml")
    assert code == 0
    heading, _, rail, hinge = out.splitlines()[1:5]
    assert re.fullmatch(r"joint +role +error RMS +error max +min +max +effort RMS +effort peak", heading)
    assert re.fullmatch(r"rail +passive +– +– +-4\.905 m +0 m +– +–", rail)
    assert re.fullmatch(r"hinge +actuated( +\S+ m?rad){2} +-\S+ m?rad +0 rad( +\S+ m?N·m){2}", hinge)


def test_names_are_never_cut_and_lines_never_broken_in_a_pipe(command):
    name = "shoulder_lift_joint"
    text = command.rig.replace("hinge", name).replace(
        "A link is", "A link with a description of more than eighty letters is"
    )
    Path("rig.yaml").write_text(text)
    code, out, _ = command("run", "rig.yaml")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 7
    assert lines[0].endswith("held by a PID controller.") and lines[3].startswith(f"{name}  actuated ")
    assert max(map(len, lines[1:4])) <= 80


def test_the_requested_files_are_written_and_named(command):
    code, out, _ = command("run", "rig.yaml", "--plot", "a.png", "--json", "a.json", "--record", "a.mcap")
    assert code == 0
    assert out.splitlines()[-1] == "wrote    plot a.png, summary a.json, recording a.mcap"
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert Path("a.mcap").read_bytes().startswith(b"\x89MCAP")
    summary = orjson.loads(Path("a.json").read_bytes())
    assert (summary["rig"], summary["outcome"], summary["ticks"]) == ("swing", "finished", 400)


def test_the_summary_of_the_library_is_the_json_of_the_command(command):
    out = command.prints("run", "rig.yaml", "--json", "-")
    written = orjson.loads(out)
    made = load_rig("rig.yaml").run().summary
    assert set(written["speed"]) == {"ticks_per_second", "real_time_factor", "real_time_factor_with_output"}
    del written["speed"], made["speed"]  # the only figures that differ from run to run
    assert written == orjson.loads(orjson.dumps(made))


def test_duration_and_overrides(command):
    for duration, ticks in (("50 ms", 50), ("0.02", 20), ("1 ms", 1)):
        code, out, _ = command("run", "rig.yaml", "--duration", duration, "--json", "-", "--set", "name=short")
        assert (code, orjson.loads(out)["ticks"], orjson.loads(out)["rig"]) == (0, ticks, "short")
    settings = "schedule.step=500us", "schedule.integrator=rosenbrock", "schedule.substeps=2"
    code, out, _ = command("run", "rig.yaml", *words_of(settings))
    assert code == 0 and "speed    800 ticks of 0.5 ms (rosenbrock, 2 substeps)," in out


def test_the_interpreter_by_option_and_by_environment(command, monkeypatch):
    values = []
    for arguments, environment in (((), "0"), (("--interpret",), "0"), ((), "1")):
        monkeypatch.setenv("COSIM_INTERPRET", environment)
        code, out, _ = command("run", "rig.yaml", "--duration", "20 ms", "--json", "-", *arguments)
        summary = orjson.loads(out)
        assert code == 0
        values.append(summary["joints"]["hinge"]["error_rms"])
        interpreted = bool(arguments) or environment == "1"
        assert (summary["engine"] == {"everything": "Python, as requested"}) is interpreted
    assert values[1] == values[2] == pytest.approx(values[0], rel=1e-12)


def test_check_describes_the_rig_without_running_it(command, said):
    out = command.prints("check", "rig.yaml")
    said(out)


def with_controller(command, lines, more=""):
    """The rig, commanded by a controller with these lines."""
    head, _, _ = command.rig.partition("  - {name: hold")
    Path("rig.yaml").write_text(f"{head}  - {{name: mine, type: mine.py}}\n{more}")
    Path("mine.py").write_text(controller(f"effort = ops.zeros(1)\n{lines}"))


@pytest.mark.parametrize(
    ("lines", "code"), [("x = u[", 2), ("raise RuntimeError('it is\\n        hot')", 1), ("u['torque']", 1)]
)
def test_a_controller_with_a_mistake_in_it(command, lines, code, said):
    with_controller(command, lines)
    got, _, err = command("run", "rig.yaml")
    assert got == code and "mine.py:23" in err[0]
    said(err)


def test_a_controller_that_stays_in_python_is_named_with_the_reason(command, said):
    with_controller(command, "u['position'][0] > 0 or print(end='')", "schedule: {duration: 0.01}\n")
    out = command.prints("run", "rig.yaml")
    said(out.splitlines()[-2:])


def words_of(settings):
    return [word for text in settings for word in ("--set", text)]


def failed(command, *settings):
    """(ticks, line of stderr) of a run that fails, after a look at what it has written."""
    code, out, err = command("run", "rig.yaml", "--record", "a.mcap", "--json", "a.json", *words_of(settings))
    assert code == 1
    (line,) = err
    assert out.splitlines()[-1] == "wrote    summary a.json, recording a.mcap"
    summary = orjson.loads(Path("a.json").read_bytes())
    assert line == f"rig.yaml: {summary['outcome']}"
    t_ns, samples, *_ = read_recording("a.mcap")
    assert len(t_ns) == summary["ticks"] + 1 == len(samples["hinge/position"])
    return summary["ticks"], line


@pytest.mark.parametrize(
    ("setting", "step"),
    [("controllers.hold.kd=1e9", 1e-3), ("schedule={step: 0.5 s, duration: 1000 s}", 0.5)],
    ids=["gain", "step"],
)
def test_a_run_that_diverges_stops_at_the_first_number_that_is_none(command, setting, step, said):
    ticks, line = failed(command, setting)
    assert ticks > 3 and f"at tick {ticks} (t = {ticks * step:.6g} s)" in line
    said(line, r"(?<=tick )\d+ \(t = \S+ s", r"(?<=position )\S+|(?<=velocity )\S+", r"(?<=at most )\S+")


def test_a_run_that_leaves_its_limits_stops(command, said):
    measured = r"(?<=tick )\d+ \(t = \S+ s"
    ticks, line = failed(command, "joints.hinge.limits={upper: 11 deg}")
    assert f"at tick {ticks} " in line
    said(line, measured, r"(?<=is at 0\.19)\d+")
    slow = "joints.hinge.limits={velocity: 1 deg/s}"
    code, out, (line,) = command(
        "run", "rig.yaml", "--plot", "a.png", *words_of([slow, "controllers.hold.trajectory.goal=10 deg"])
    )
    assert (code, out.splitlines()[-1]) == (1, "wrote    plot a.png")
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    said(line, measured, r"-?0\.01\d+(?= rad/s, above)")


def test_the_program_leaves_with_the_code_of_what_happened(command):
    program = [sys.executable, "-c", "from cosim.cli.main import main; main()", "run", "none.yaml"]
    done = subprocess.run(program, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "none.yaml: no such file; check the path\n")


def test_code_that_ends_the_program_is_no_success(command, monkeypatch):
    monkeypatch.setattr("cosim.cli.command_line.parse", lambda words: lambda: sys.exit(0))
    code, out, err = command("check", "rig.yaml")
    assert (code, out) == (1, "")
    (message,) = err
    assert message.startswith("code that was called ended the program (") and "test_cli.py:" in message
