"""`cosim explain`: recordings of small rigs that stop for known causes, and what is no such recording."""

import dataclasses
import math
from contextlib import suppress

import orjson
import pytest

from cosim.apps.post_mortem.command import explain
from cosim.output.events import RunEvent
from cosim.output.timing_report import is_timing_line, timing_lines
from cosim.rig.run.run import StoppedRun, load_run
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


def recording(
    folder, limits="", push="effort = ops.array([p.size])", controlled_by="type: push.py, size: 10", guard=""
):
    """Of the rail until it stops, or to its end."""
    text, path = RAIL.format(limits=limits, controller=controlled_by, guard=guard), folder / "run.mcap"
    with suppress(StoppedRun):
        rig_in(folder, text, push=controller(push)).run(record=path)
    return path


def explained(command, path, *options):
    code, out, err = command("explain", path, *options)
    assert (code, err) == (0, [])
    return out.splitlines()


# how it is run -> the cause of its stop
STOPS = {
    # v = 10 t and x = 5 t²: beyond 0.5 m/s after 50 ms, beyond 0.1 m after √0.02 s
    "a position limit": (
        {"limits": "velocity: 0.5, lower: -0.1, upper: 0.1, actions: {velocity: warn}"},
        "position of a",
    ),
    # gains that are too low for the reference
    "a tracking error": (
        {
            "limits": "tracking: 0.02",
            "controlled_by": "type: pid, kp: 1, ki: 0, kd: 0.1, trajectory: {type: quintic, goal: 0.2, duration: 0.4}",
        },
        "tracking of a",
    ),
    # 4 N from 0.1 s on make 0.5 m/s after 125 ms
    "an effort that saturates": (
        {"limits": "effort: 4, velocity: 0.5", "push": "effort = ops.array([ops.where(t < 0.1, 0.0, p.size)])"},
        "velocity of a",
    ),
    # a spring and a damper of the wrong sign: the motion overflows
    "a run that diverges": ({"push": "effort = 1e8 * q + 1e8 * v + 1.0"}, "not_finite of a"),
    "a command that is not finite": ({"push": "effort = ops.array([ops.sqrt(0.2 - t)])"}, "not_finite of a"),
    "a controller that fails": (
        {"push": "if float(n[0]) > 99: raise ValueError('no plan')\neffort = np.array([1.0])"},
        "controller of main",
    ),
    # the joint goes on at 0.2 m/s, without any effort of the fallback, and leaves its limits
    "a fallback that took over": (
        {
            "limits": "lower: -0.05, upper: 0.05",
            "push": "effort = ops.array([ops.where(t < 0.05, 4.0, ops.sqrt(0.05 - t))])",
            "controlled_by": "type: push.py, size: 10, fallback: {type: pid, kp: 0, ki: 0, kd: 0}",
        },
        "position of a",
    ),
}


@pytest.mark.parametrize("case", STOPS)
def test_why_a_run_was_stopped(command, tmp_path, said, case):
    how, cause = STOPS[case]
    path = recording(tmp_path, **how)
    lines = explained(command, path)
    assert lines[1] == f"cause: {cause}" and lines[-1].startswith("next: ")
    said(lines, r"\S+e\+\d+")
    if case == "a position limit":
        said(explained(command, path, "--last", "20 ms"))


def test_a_controlled_stop_is_explained_from_its_beginning(command, tmp_path):
    """The joint leaves its limits after a tenth of a second, and is at rest later."""
    sine = "trajectory: {type: sine, amplitude: 0.08, frequency: 1 Hz}"
    follows = f"type: feedforward_pd, kp: 4000, kd: 120, {sine}"
    path = recording(tmp_path, "lower: -0.05, upper: 0.05", controlled_by=follows, guard="deceleration: 5 m/s^2")
    lines = explained(command, path, "--json", tmp_path / "why.json")
    data = orjson.loads((tmp_path / "why.json").read_bytes())
    assert "followed by a controlled stop" in lines[0] and data["cause"] == {"word": "position", "name": "a"}
    assert data["t_s"] == pytest.approx(0.109, abs=0.01)  # asin(5 / 8) / 2 pi = 0.1074 s, and the error of tracking
    last = data["symptoms"][-1]
    assert (last["kind"], last["before_stop_s"]) == ("limit", pytest.approx(0.0, abs=1e-9))
    assert last["value"] > last["limit"] == 0.05


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


def test_a_run_without_a_stop(command, tmp_path):
    path = recording(tmp_path, "velocity: 500")
    assert explained(command, path) == ["rail: the run ended without a stop at t = 0.4 s"]
    code, out, err = command("explain", path, "--json", "-")
    data = orjson.loads(out)
    assert (code, err, data["stopped"], data["symptoms"], data["first_symptom"]) == (0, [], False, [], None)


def test_what_cannot_be_explained_is_named(command, tmp_path, said):
    (tmp_path / "empty.mcap").touch()
    (tmp_path / "text.mcap").write_text("t,a\n" * 100)
    (tmp_path / "cut.mcap").write_bytes(recording_of(tmp_path / "a.mcap", 20_000).read_bytes()[:1000])
    for name in ("empty.mcap", "text.mcap", "none.mcap", "cut.mcap"):
        said(command.refuses("explain", tmp_path / name))
    whole = (tmp_path / "a.mcap").read_bytes()
    (tmp_path / "a.mcap").write_bytes(whole[: len(whole) // 2])
    said(command.refuses("explain", tmp_path / "a.mcap"), r"(?<=t = )\S+")
    said(command.refuses("explain", tmp_path / "a.mcap", "--last", "0 s"))
    said(command.refuses("explain", tmp_path / "a.mcap", "--json", tmp_path / "why.txt"))


def test_the_index_may_be_missing(command, tmp_path):
    """What the recording lacks is said, and the stop is explained."""
    path = recording(tmp_path, "velocity: 0.5")
    whole, before = path.read_bytes(), explained(command, path)
    path.write_bytes(whole[: len(whole) * 2 // 3])
    lines = explained(command, path)
    assert lines[0].startswith(f"warning  {path}: the recording is cut off after t = ") and lines[1:] == before
