"""`cosim explain`: recordings of small rigs that stop for known causes, and what is no such recording."""

import dataclasses
import math
import re
from contextlib import suppress

import orjson
import pytest

from cosim.output.events import RunEvent
from cosim.output.recording_reader import NO_TICK
from cosim.output.timing_report import is_timing_line, timing_lines
from cosim.post_mortem.explanation import explain
from cosim.rig.run import StoppedRun, load_run
from tests.kit.rigs import controller, rig_in
from tests.rig.test_opened_recordings import recording_of
from tests.timing.test_deadlines import ticks, timing

RAIL = """
name: rail
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}}
    - {{name: b, type: prismatic, parent: base, axis: [1, 0, 0], mass: 1 kg}}
joints: {{a: {{limits: {{{limits}}}}}}}
controllers: [{{name: main, joints: [a], {controller}}}]
schedule: {{duration: 400 ms}}
guard: {{{guard}}}
"""
OWN = "type: push.py, size: 10"
SINE = "trajectory: {type: sine, amplitude: 0.01, frequency: 1 Hz}"
PUSH = "effort = ops.array([p.size])"


def recording(folder, limits, push=PUSH, controlled_by=OWN, guard="", **more):
    """Of the rail until it stops, or to its end."""
    text = RAIL.format(limits=limits, controller=controlled_by, guard=guard)
    path = folder / "run.mcap"
    with suppress(StoppedRun):
        rig_in(folder, text, push=controller(push)).run(record=path, **more)
    return path


def explained(command, path, *options):
    code, out, err = command("explain", path, *options)
    assert (code, err) == (0, [])
    return out.splitlines()


def test_a_position_limit(command, tmp_path):
    """v = 10 t and x = 5 t²: beyond 0.5 m/s after 50 ms, beyond 0.1 m after √0.02 s."""
    path = recording(tmp_path, "velocity: 0.5, lower: -0.1, upper: 0.1, actions: {velocity: warn}")
    assert explained(command, path) == [
        "rail: stopped at tick 142 (t = 0.142 s): joint 'a' is at 0.10082 m, outside its limits -0.1 to 0.1 m; change"
        " the trajectory or joints.a.limits",
        "cause: position of a",
        "      -97 ms  joint 'a': velocity 0.45 m/s, 90 % of its limit of 0.5 m/s",
        "      -92 ms  joint 'a': velocity 0.5 m/s, beyond its limit of 0.5 m/s",
        "      -92 ms  warning: a: velocity beyond its limit of 0.5 m/s (warned)",
        "       -7 ms  joint 'a': position 0.091125 m, 0.00887 m from its limit of 0.1 m",
        "        0 ms  joint 'a': position 0.10082 m, beyond its limit of 0.1 m",
        "first sign: -92 ms  joint 'a': velocity 0.5 m/s, beyond its limit of 0.5 m/s",
        "next: change the trajectory or joints.a.limits",
    ]
    short = explained(command, path, "--last", "20 ms")
    assert [line.split(",")[0] for line in short[2:-2]] == [
        "      -20 ms  joint 'a': velocity 1.22 m/s",
        "       -7 ms  joint 'a': position 0.091125 m",
        "        0 ms  joint 'a': position 0.10082 m",
    ]


def test_a_controlled_stop_is_explained_from_its_beginning(command, tmp_path):
    """The joint leaves its limits after a tenth of a second, and is at rest later."""
    follows = f"type: feedforward_pd, kp: 4000, kd: 120, {SINE.replace('0.01', '0.08')}"
    path = recording(tmp_path, "lower: -0.05, upper: 0.05", controlled_by=follows, guard="deceleration: 5 m/s^2")
    lines = explained(command, path, "--json", tmp_path / "why.json")
    data = orjson.loads((tmp_path / "why.json").read_bytes())
    assert "followed by a controlled stop" in lines[0] and data["cause"] == {"word": "position", "name": "a"}
    assert data["t_s"] == pytest.approx(0.109, abs=0.01)  # asin(5 / 8) / 2 pi = 0.1074 s, and the error of tracking
    last = data["signs"][-1]
    assert (last["kind"], last["before_stop_s"]) == ("limit", pytest.approx(0.0, abs=1e-9))
    assert last["value"] > last["limit"] == 0.05


def test_a_tracking_error(command, tmp_path):
    """Gains that are too low for the reference."""
    weak = "type: pid, kp: 1, ki: 0, kd: 0.1, trajectory: {type: quintic, goal: 0.2, duration: 0.4 s}"
    lines = explained(command, recording(tmp_path, "tracking: 0.02", controlled_by=weak))
    assert lines[0].startswith("rail: stopped at tick ") and "from its reference" in lines[0]
    assert lines[1] == "cause: tracking of a"
    assert lines[-2].startswith("first sign: -") and "joint 'a': tracking error grew from " in lines[-2]
    assert lines[-1].startswith("next: check for an obstruction, slow the trajectory down")


def test_an_effort_that_saturates(command, tmp_path):
    """4 N from 0.1 s on make 0.5 m/s after 125 ms."""
    push = "effort = ops.array([ops.where(t < 0.1, 0.0, p.size)])"
    lines = explained(command, recording(tmp_path, "effort: 4, velocity: 0.5", push))
    assert lines[1] == "cause: velocity of a"
    assert lines[-2] == "first sign: -125 ms  joint 'a': commanded effort 4 N, at its limit of 4 N from then on"


def test_a_run_that_diverges(command, tmp_path):
    """A spring and a damper of the wrong sign: the motion overflows."""
    push = "effort = 1e8 * q + 1e8 * v + 1.0"
    lines = explained(command, recording(tmp_path, "", push))
    assert "not finite" in lines[0] and lines[1] == "cause: not_finite of a"
    assert lines[-2].startswith("first sign: ")
    assert lines[-1].startswith("next: ") and lines[0].endswith(lines[-1].removeprefix("next: "))


def test_a_command_that_is_not_finite(command, tmp_path):
    lines = explained(command, recording(tmp_path, "", "effort = ops.array([ops.sqrt(0.2 - t)])"))
    assert lines[1:] == [
        "cause: not_finite of a",
        "        0 ms  joint 'a': command_effort is nan",
        "first sign: 0 ms  joint 'a': command_effort is nan",
        "next: check its controller",
    ]


def test_a_controller_that_fails(command, tmp_path):
    push = "if float(n[0]) > 99: raise ValueError('no plan')\neffort = np.array([1.0])"
    lines = explained(command, recording(tmp_path, "", push))
    source = (tmp_path / "push.py").read_text().splitlines()
    place = f"{tmp_path}/push.py:{1 + next(k for k, line in enumerate(source) if 'no plan' in line)}"
    assert lines == [
        f"rail: stopped at tick 100 (t = 0.1 s): controller 'main' failed: ValueError: no plan ({place})",
        "cause: controller of main",
        "first sign: the stop itself",
        f"next: look at {place}",
    ]


def test_the_timing_of_a_run_is_no_event_before_its_stop(command, tmp_path):
    """A recording has it among its events, at its end."""
    path = recording(tmp_path, "lower: -0.1, upper: 0.1")
    run = load_run(path)
    lines = timing_lines(timing(ticks(10)).summary())
    assert len(lines) > 2 and all(map(is_timing_line, lines))
    events = [RunEvent(float(run.t[-1]), text, math.nan) for text in (*lines, "tick")]
    dataclasses.replace(run, events=(*run.events, *events)).save(tmp_path / "run.npz")
    found = explain(load_run(tmp_path / "run.npz"), "run.npz", 1.0)
    assert [line.split("event: ")[1] for line in found.lines() if "event: " in line] == ["tick"]


def test_a_fallback_that_took_over(command, tmp_path):
    """The joint goes on at 0.2 m/s, without any effort of the fallback, and leaves its limits."""
    fails = "effort = ops.array([ops.where(t < 0.05, 4.0, ops.sqrt(0.05 - t))])"
    fallback = f"{OWN}, fallback: {{type: pid, kp: 0, ki: 0, kd: 0}}"
    lines = explained(command, recording(tmp_path, "lower: -0.05, upper: 0.05", fails, fallback))
    assert lines[1] == "cause: position of a"
    assert "controller 'main' failed: its fallback has taken over (its command was not finite)" in lines[-2]
    assert lines[-2].startswith("first sign: -")


def test_a_run_without_a_stop(command, tmp_path):
    path = recording(tmp_path, "velocity: 500")
    assert explained(command, path) == ["rail: the run ended without a stop at t = 0.4 s"]
    code, out, err = command("explain", path, "--json", "-")
    data = orjson.loads(out)
    assert (code, err, data["stopped"], data["signs"], data["first_sign"]) == (0, [], False, [], None)


def refused(command, *arguments):
    code, out, err = command("explain", *arguments)
    assert (code, out) == (2, "")
    assert len(err) == 1
    return err[0]


NOT_MCAP = "not an MCAP file; give one written by 'cosim run RIG --record FILE.mcap'"


def test_what_is_no_recording(command, tmp_path):
    empty, text = tmp_path / "empty.mcap", tmp_path / "text.mcap"
    empty.touch()
    text.write_text("t,a\n" * 100)
    assert refused(command, empty) == f"{empty}: {NOT_MCAP}"
    assert refused(command, text) == f"{text}: {NOT_MCAP}"
    missing = tmp_path / "none.mcap"
    what = "cannot read the recording: No such file or directory; check the path"
    assert refused(command, missing) == f"{missing}: {what}"


def test_a_recording_that_was_cut(command, tmp_path):
    """Before its end, and before its first tick."""
    path = recording_of(tmp_path / "a.mcap", 20_000)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert re.sub(r"t = \S+ s", "t = T s", refused(command, path)) == (
        f"{path}: the recording is cut off after t = T s: its program was killed, or is still writing it; what ended"
        " the run is not in it; record the run again"
    )
    path.write_bytes(whole[:1000])
    assert refused(command, path) == f"{path}: {NO_TICK}"


def test_the_index_may_be_missing(command, tmp_path):
    """What the recording lacks is said, and the stop is explained."""
    path = recording(tmp_path, "velocity: 0.5")
    whole, said = path.read_bytes(), explained(command, path)
    path.write_bytes(whole[: len(whole) * 2 // 3])
    lines = explained(command, path)
    assert lines[0].startswith(f"warning  {path}: the recording is cut off after t = ") and lines[1:] == said


def test_wrong_options(command, tmp_path):
    path = tmp_path / "run.mcap"
    assert refused(command, path, "--last", "0 s") == (
        "--last: expected a time from 1 ms to 1 h, such as 2 s, got '0 s'"
    )
    what = f"--json: {tmp_path}/why.txt: the file must have the suffix .json; choose another name"
    assert refused(command, path, "--json", tmp_path / "why.txt") == what
