"""`cosim tune` and `cosim sessions` on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from cosim import load_rig, load_run
from cosim.rig.reading.overlay import read_overlay
from tests.kit.command import Command

WORDS = ("tune", "rig.yaml", "--parameter", "hold.kp=20..200", "--parameter", "hold.kd=x0.5..x2", "--trials", "16")


def test_a_session_prints_its_gains_and_the_files_that_it_wrote(command: Command):
    code, out, err = command(*WORDS, "--limit", "effort_max=30", "--plant", "inertia=20 %", "--optimiser", "cma")
    assert (code, err) == (0, [])
    lines = out.splitlines()
    assert re.fullmatch(r"16/16 trials  best \d+: cost [\d.e-]+", lines[0])
    assert [line.split()[0] for line in lines if line.startswith("hold.")] == ["hold.kp", "hold.kd"]
    figures = {line.split()[0]: line.split()[1:] for line in lines}
    assert figures["effort_max"][-2:] == ["≤", "30"] and len(figures["error_rms"]) == 5
    assert (figures["effort_max"][0], figures["error_rms"][0]) == ("N·m", "rad")
    assert lines[-2:] == [
        "wrote    report tuning/swing_1/report.html",
        "wrote    gains tuning/swing_1/gains.yaml",
    ]
    run = load_rig("rig.yaml", read_overlay("tuning/swing_1/gains.yaml")).run()
    assert run.summary["joints"]["hinge"]["error_rms"] == pytest.approx(float(figures["error_rms"][3]), rel=1e-4)


def test_the_section_of_the_rig_is_enough_and_options_add_to_it(command: Command):
    data = yaml.safe_load(Path("rig.yaml").read_text())
    data["tuning"] = {"parameters": {"hold.kp": "20..200"}, "trials": 4, "batch": 2, "optimiser": "de"}
    Path("rig.yaml").write_text(yaml.safe_dump(data))
    code, out, err = command("tune", "rig.yaml", "--parameter", "hold.kd=1..9", "--set", "tuning.trials=6")
    assert (code, err) == (0, []) and "6/6 trials" in out and "\nhold.kp" in out and "\nhold.kd" in out


def test_a_session_goes_on_where_it_ended(command: Command):
    command(*WORDS, "--session", "one", "--optimiser", "de")
    code, out, err = command("tune", "rig.yaml", "--resume", "--session", "one", "--trials", "32")
    assert (code, err) == (0, []) and "32/32 trials" in out
    command(*WORDS[:-1], "32", "--session", "two", "--optimiser", "de")
    assert Path("one/trials.jsonl").read_bytes() == Path("two/trials.jsonl").read_bytes()


def test_the_latest_session_of_the_rig_goes_on_by_default(command: Command):
    command(*WORDS, "--optimiser", "de")
    code, out, _ = command("tune", "rig.yaml", "--resume", "--trials", "20")
    assert code == 0 and "wrote    report tuning/swing_1/report.html" in out
    assert command.refuses("tune", "rig.yaml", "--set", "schedule.step=2 ms", "--resume") == [
        "tuning: the sessions of 'swing' are of a rig that has changed since; begin another session without --resume"
    ]


def test_nothing_to_resume(command: Command):
    assert command.refuses("tune", "rig.yaml", "--resume") == [
        "tuning: there is no session of 'swing'; begin one without --resume"
    ]


def test_a_session_that_is_damaged_does_not_hide_the_others(command: Command):
    command(*WORDS, "--optimiser", "de")
    damaged = Path("tuning/swing_2/session.json")
    damaged.parent.mkdir()
    damaged.write_text("{")
    code, out, err = command("sessions")
    rows = [line.split() for line in out.splitlines()[2:]]
    assert (code, err) == (0, []) and rows[0] == ["tuning/swing_2", "damaged", *"––––––"]
    assert [row[0] for row in rows] == ["tuning/swing_2", "tuning/swing_1"]
    assert command("tune", "rig.yaml", "--resume", "--trials", "20")[0] == 0
    (line,) = command.refuses("sessions", "tuning/swing_2")
    assert line.startswith("tuning/swing_2/session.json: is damaged: ") and line.endswith("; begin another session")


def test_an_empty_name_of_a_folder(command: Command):
    assert command.refuses(*WORDS, "--session", "") == ["--session: '' is no folder; name one"]


def test_no_trial_that_holds_a_limit_is_a_failed_run(command: Command):
    code, out, err = command(*WORDS, "--limit", "effort_max=0.1")
    assert code == 1 and out.endswith("wrote    report tuning/swing_1/report.html\n")
    (line,) = err
    assert line.startswith("tune: none of 17 trials holds all limits; the nearest is trial ")
    assert "effort_max is" in line and not Path("tuning/swing_1/gains.yaml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--parameter", "hold.kp"), "--parameter hold.kp: has no upper bound of its own; give its range, such as"),
        (("--parameter", "=1..2"), "--parameter: expected NAME=VALUE, got '=1..2'"),
        (("--limit", "overshoot"), "--limit: expected NAME=VALUE, got 'overshoot'"),
        (("--parameter", "hold.kp=1..9", "--trials", "0"), "--trials: must be at least 1, is 0"),
        (("--parameter", "hold.kp=1..9", "--duration", "soon"), "--duration: expected a number, got 'soon'"),
        (
            ("--parameter", "hold.kp=1..9", "--minimise", "iea"),
            "--minimise iea: there is no metric, margin or signal 'iea'",
        ),
        (
            ("--parameter", "hold.kp=1..9", "--dask", "here"),
            "--dask: 'here' has no protocol; give an address",
        ),
        (
            ("--parameter", "hold.kp=1..9", "--dask", "tcp://127.0.0.1"),
            "--dask: missing port number in address '127.0.0.1'; give an address such as tcp://host:8786",
        ),
        (("--trial", "5"), "--trial: is for --on-hardware; add it, or take --trial out"),
        (("--step-factor", "0.5"), "--step-factor: is for --on-hardware; add it, or take --step-factor out"),
        (("--candidates=2",), "--candidates: is for --on-hardware; add it, or take --candidates out"),
        (("--yes",), "--yes: is for --on-hardware; add it, or take --yes out"),
        (("--replay", "s", "--on-hardware", "r", "--trials", "9"), "--trials: has no effect beside --replay; take one"),
        (("--on-hardware", "nope.yaml"), "nope.yaml: no such file; check the path"),
        (("--on-hardware", "rig.yaml", "--step-factor", "11"), "--step-factor: expected a factor above 1, up to 10"),
        (("--on-hardware", "rig.yaml", "--candidates", "0"), "--candidates: expected a number from 1 on, got 0"),
        (("--on-hardware", "rig.yaml"), "--yes: real motors would move and there is no terminal to confirm on;"),
        (
            ("--parameter", "hold.kp=1..9", "--on-hardware", "rig.yaml", "--yes"),
            "rig.yaml: has no real motors; give a rig with drivers",
        ),
    ],
)
def test_options_that_do_not_fit(command: Command, words, message):
    (line,) = command.refuses("tune", "rig.yaml", *words)
    assert line.startswith(message)
    assert not Path("tuning").exists()


WRONG = {
    "parameters: {hold.kpp: 1..2}": "parameters.hold.kpp: there is no such parameter; did you mean 'hold.kp'?",
    "parameters: {hold.kp: 1..1}": (
        "parameters.hold.kp: has equal bounds: 1..1; give two different ones, or take it out"
    ),
    "parameters: {hold.kp: 1..1e13}": (
        "parameters.hold.kp: '1e13' is beyond ±1e+12; give a range such as 10..2000, or x0.2..x5 for multiples of its"
        " value"
    ),
    "minimise: {error_rms: 0}": "minimise.error_rms: expected a weight above 0, got 0",
    "minimise: [overshot]": (
        "minimise.overshot: there is no metric, margin or signal 'overshot'; did you mean 'overshoot'?"
    ),
    "limits: {disk_margin: 5}": "limits.disk_margin: no loop has 5: disk_margin is at most 2; lower the bound",
    "limits: {error_rms: 5 %}": "limits.error_rms: unit '%' does not fit here; use rad, mrad, deg, turn",
    "plants: {inertia: 150 %}": "plants.inertia: expected a fraction between 0 and 1, such as 20 %, got '150 %'",
    "samples: 5": "samples: there is nothing to vary; give plants, such as plants: {inertia: 20 %}",
    "optimiser: genetic": (
        "optimiser: there is no optimiser 'genetic'; known: cma, de, gradient, relay, shape, sobol, tpe"
    ),
}


@pytest.mark.parametrize(("line", "message"), WRONG.items())
def test_what_is_wrong_in_the_file_has_its_line(command: Command, line: str, message: str):
    text = Path("rig.yaml").read_text()
    others = {"parameters: {hold.kp: 1..9}", "trials: 2"} - {line}
    kept = [other for other in sorted(others) if other.partition(":")[0] != line.partition(":")[0]]
    Path("rig.yaml").write_text("\n".join([text.rstrip(), "tuning:", *(f"  {each}" for each in (*kept, line)), ""]))
    number = len(text.rstrip().splitlines()) + 2 + len(kept)
    assert command.refuses("tune", "rig.yaml") == [f"rig.yaml:{number} tuning.{message}"]


def test_what_is_wrong_in_an_option_names_it_beside_a_section_in_the_file(command: Command):
    text = Path("rig.yaml").read_text()
    Path("rig.yaml").write_text(f"{text.rstrip()}\ntuning:\n  parameters: {{hold.kp: 1..9}}\n  limits: {{iae: 5}}\n")
    assert command.refuses("tune", "rig.yaml", "--limit", "overshoot=-1") == [
        "--limit overshoot: -1 is no bound: overshoot is never below 0; give 0 or more"
    ]
    assert command.refuses("tune", "rig.yaml", "--optimiser", "none") == [
        "--optimiser: there is no optimiser 'none'; known: cma, de, gradient, relay, shape, sobol, tpe"
    ]


# --- sessions -------------------------------------------------------------------------------------------


@pytest.fixture
def two(command: Command):
    command(*WORDS, "--optimiser", "de", "--minimise", "iae")
    command(*WORDS[:4], "--trials", "8", "--optimiser", "cma")
    return command


def test_sessions_are_listed_shown_and_compared(two: Command):
    code, out, err = two("sessions")
    rows = [line.split() for line in out.splitlines()[2:]]
    assert (code, err) == (0, []) and [row[0] for row in rows] == ["tuning/swing_1", "tuning/swing_2"]
    assert [row[4:6] for row in rows] == [["de", "16/16"], ["cma", "8/8"]]
    code, out, _ = two("sessions", "tuning/swing_1")
    assert code == 0 and "parameters hold.kp=20..200, hold.kd=x0.5..x2\nminimise   iae\n" in out
    assert "trials     16 of 16 by de, seed 0, 0 failed\n" in out
    code, out, _ = two("sessions", "tuning/swing_1", "tuning/swing_2")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[2:]}
    assert code == 0 and rows["hold.kd"][1] == "–" and rows["iae"][1] == "–" and rows["error_rms"][0] == "–"


def test_a_trial_runs_again_as_a_recording(two: Command):
    code, out, err = two("sessions", "tuning/swing_2", "--trial", "5", "--record", "again.mcap")
    assert (code, err) == (0, []) and out.endswith("wrote    recording again.mcap\n")
    cost = re.match(r"trial 5  cost (\S+) on 1 plant, equal to the bit\n", out)
    assert cost is not None
    error = load_run("again.mcap").summary["joints"]["hinge"]["error_rms"]
    assert error == pytest.approx(float(cost[1]), rel=1e-4)


def test_a_trial_that_gives_another_result_is_reported(two: Command):
    file = Path("tuning/swing_2/trials.jsonl")
    text = file.read_text()
    (changed,) = re.findall(r'"trial":3,.*?"cost":([\d.e-]+)', text)
    file.write_text(text.replace(f'"cost":{changed}', '"cost":0.25'))
    code, out, err = two("sessions", "tuning/swing_2", "--trial", "3")
    what = f"trial 3 gives another result here: cost {float(changed):.17g}, recorded 0.25"
    assert (code, out) == (1, "")
    assert err == [f"tuning/swing_2: {what}; it was run with other versions, see session.json"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere",), "nowhere: there are no sessions here; begin one with cosim tune RIG"),
        (("--record", "a.mcap"), "--record: only a trial can be recorded; add --trial"),
        (("tuning/swing_2", "--trial", "9"), "--trial: there is no trial 9 in tuning/swing_2; its trials are 0 to 8"),
        (("tuning/swing_1", "tuning/swing_2", "--trial", "1"), "--trial: give the one session of the trial"),
        (("tuning/swing_1", "tuning"), "tuning: has no session; it needs a file session.json"),
    ],
)
def test_sessions_that_do_not_exist(two: Command, words, message):
    assert two.refuses("sessions", *words) == [message]
