"""`cosim tune gains` and `cosim tune sessions` on the command line."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from cosim import load_rig, load_run, tune
from cosim.rig.reading.yaml_source import read_overlay
from tests.kit.command import Command
from tests.kit.messages import Said

WORDS = (
    "tune",
    "gains",
    "rig.yaml",
    "--parameter",
    "hold.kp=20..200",
    "--parameter",
    "hold.kd=x0.5..x2",
    "--trials",
    "16",
)


def test_a_session_prints_its_gains_and_the_files_that_it_wrote(command: Command):
    code, out, err = command(*WORDS, "--limit", "effort_max=30", "--plant", "inertia=20 %", "--optimiser", "cma")
    assert (code, err) == (0, [])
    lines = out.splitlines()
    assert re.fullmatch(r"16/16 trials  best \d+: cost [\d.e-]+", lines[0])
    assert [line.split()[0] for line in lines if line.startswith("hold.")] == ["hold.kp", "hold.kd"]
    figures = {line.split()[0]: line.split()[1:] for line in lines}
    assert figures["effort_max"][-2:] == ["≤", "30"] and len(figures["error_rms"]) == 5
    assert (figures["effort_max"][0], figures["error_rms"][0]) == ("N·m", "rad")
    assert lines[-2:] == ["wrote    report tuning/swing_1/report.html", "wrote    gains tuning/swing_1/gains.yaml"]
    run = load_rig("rig.yaml", read_overlay("tuning/swing_1/gains.yaml")).run()
    assert run.summary["joints"]["hinge"]["error_rms"] == pytest.approx(float(figures["error_rms"][3]), rel=1e-4)


def test_the_section_of_the_rig_is_enough_and_options_add_to_it(command: Command):
    data = yaml.safe_load(Path("rig.yaml").read_text())
    data["tuning"] = {"parameters": {"hold.kp": "20..200"}, "trials": 4, "batch": 2, "optimiser": "de"}
    Path("rig.yaml").write_text(yaml.safe_dump(data))
    code, out, err = command("tune", "gains", "rig.yaml", "--parameter", "hold.kd=1..9", "--set", "tuning.trials=6")
    assert (code, err) == (0, []) and "6/6 trials" in out and "\nhold.kp" in out and "\nhold.kd" in out


def test_a_session_goes_on_where_it_ended(command: Command):
    command(*WORDS, "--session", "one", "--optimiser", "de")
    code, out, err = command("tune", "gains", "rig.yaml", "--resume", "--session", "one", "--trials", "32")
    assert (code, err) == (0, []) and "32/32 trials" in out
    command(*WORDS[:-1], "32", "--session", "two", "--optimiser", "de")
    assert Path("one/trials.jsonl").read_bytes() == Path("two/trials.jsonl").read_bytes()


def test_the_latest_session_of_the_rig_goes_on_by_default(command: Command, said: Said):
    command(*WORDS, "--optimiser", "de")
    code, out, _ = command("tune", "gains", "rig.yaml", "--resume", "--trials", "20")
    assert code == 0 and "wrote    report tuning/swing_1/report.html" in out
    said(command.refuses("tune", "gains", "rig.yaml", "--set", "schedule.step=2 ms", "--resume"))


def test_nothing_to_resume(command: Command, said: Said):
    said(command.refuses("tune", "gains", "rig.yaml", "--resume"))


def test_a_session_that_is_damaged_does_not_hide_the_others(command: Command):
    command(*WORDS, "--optimiser", "de")
    damaged = Path("tuning/swing_2/session.json")
    damaged.parent.mkdir()
    damaged.write_text("{")
    code, out, err = command("tune", "sessions")
    rows = [line.split() for line in out.splitlines()[2:]]
    assert (code, err) == (0, []) and rows[0] == ["tuning/swing_2", "damaged", *"––––––"]
    assert [row[0] for row in rows] == ["tuning/swing_2", "tuning/swing_1"]
    assert command("tune", "gains", "rig.yaml", "--resume", "--trials", "20")[0] == 0
    (line,) = command.refuses("tune", "sessions", "tuning/swing_2")
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
    "words",
    [
        "--parameter hold.kp",
        "--parameter =1..2",
        "--limit overshoot",
        "--parameter hold.kp=1..9 --trials 0",
        "--parameter hold.kp=1..9 --duration soon",
        "--parameter hold.kp=1..9 --minimise iea",
        "--parameter hold.kp=1..9 --dask here",
        "--parameter hold.kp=1..9 --dask tcp://127.0.0.1",
        "--trial 5",
        "--step-factor 0.5",
        "--candidates=2",
        "--yes",
        "--replay s --on-hardware r --trials 9",
        "--on-hardware nope.yaml",
        "--on-hardware rig.yaml --step-factor 11",
        "--on-hardware rig.yaml --candidates 0",
        "--on-hardware rig.yaml",
        "--parameter hold.kp=1..9 --on-hardware rig.yaml --yes",
    ],
)
def test_options_that_do_not_fit(command: Command, words: str, said: Said):
    said(command.refuses("tune", "gains", "rig.yaml", *words.split()))
    assert not Path("tuning").exists()


@pytest.mark.parametrize(
    "line",
    [
        "parameters: {hold.kpp: 1..2}",
        "parameters: {hold.kp: 1..1}",
        "parameters: {hold.kp: 1..1e13}",
        "minimise: {error_rms: 0}",
        "minimise: [overshot]",
        "limits: {disk_margin: 5}",
        "limits: {error_rms: 5 %}",
        "plants: {inertia: 150 %}",
        "samples: 5",
        "optimiser: genetic",
    ],
)
def test_what_is_wrong_in_the_file_has_its_line(command: Command, line: str, said: Said):
    text, key = Path("rig.yaml").read_text().rstrip(), line.partition(":")[0]
    kept = [other for other in ("parameters: {hold.kp: 1..9}", "trials: 2") if other.partition(":")[0] != key]
    Path("rig.yaml").write_text("\n".join([text, "tuning:", *(f"  {each}" for each in (*kept, line)), ""]))
    err = command.refuses("tune", "gains", "rig.yaml")
    assert err[0].startswith(f"rig.yaml:{len(text.splitlines()) + 2 + len(kept)} tuning.{key}")
    said(err)


def test_what_is_wrong_in_an_option_names_it_beside_a_section_in_the_file(command: Command, said: Said):
    text = Path("rig.yaml").read_text()
    Path("rig.yaml").write_text(f"{text.rstrip()}\ntuning:\n  parameters: {{hold.kp: 1..9}}\n  limits: {{iae: 5}}\n")
    for words in (("--limit", "overshoot=-1"), ("--optimiser", "none")):
        said(command.refuses("tune", "gains", "rig.yaml", *words))


# --- sessions -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sessions(tmp_path_factory) -> Path:
    """The folder of two sessions."""
    folder = tmp_path_factory.mktemp("sessions")
    (folder / "rig.yaml").write_text(Command.rig)
    rig, kp = load_rig(folder / "rig.yaml", interpret=False), {"hold.kp": "20..200"}
    begin = folder / "tuning"
    both = {**kp, "hold.kd": "x0.5..x2"}
    tune(rig, both, trials=16, optimiser="de", minimise=["iae"], folder=begin / "swing_1")
    tune(rig, kp, trials=8, optimiser="cma", folder=begin / "swing_2")
    return begin


@pytest.fixture
def two(command: Command, sessions: Path):
    """The command beside a copy of them."""
    shutil.copytree(sessions, "tuning")
    return command


def test_sessions_are_listed_shown_and_compared(two: Command):
    code, out, err = two("tune", "sessions")
    rows = [line.split() for line in out.splitlines()[2:]]
    assert (code, err) == (0, []) and [row[0] for row in rows] == ["tuning/swing_1", "tuning/swing_2"]
    assert [row[4:6] for row in rows] == [["de", "16/16"], ["cma", "8/8"]]
    code, out, _ = two("tune", "sessions", "tuning/swing_1")
    assert code == 0 and "parameters hold.kp=20..200, hold.kd=x0.5..x2\nminimise   iae\n" in out
    assert "trials     16 of 16 by de, seed 0, 0 failed\n" in out
    code, out, _ = two("tune", "sessions", "tuning/swing_1", "tuning/swing_2")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[2:]}
    assert code == 0 and rows["hold.kd"][1] == "–" and rows["iae"][1] == "–" and rows["error_rms"][0] == "–"


def test_a_trial_runs_again_as_a_recording(two: Command):
    code, out, err = two("tune", "sessions", "tuning/swing_2", "--trial", "5", "--record", "again.mcap")
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
    code, out, err = two("tune", "sessions", "tuning/swing_2", "--trial", "3")
    what = f"trial 3 gives another result here: cost {float(changed):.17g}, recorded 0.25"
    assert (code, out) == (1, "")
    assert err == [f"tuning/swing_2: {what}; it was run with other versions, see session.json"]


@pytest.mark.parametrize(
    "words",
    [
        ("nowhere",),
        ("--record", "a.mcap"),
        ("tuning/swing_2", "--trial", "9"),
        ("tuning/swing_1", "tuning/swing_2", "--trial", "1"),
        ("tuning/swing_1", "tuning"),
    ],
    ids=str,
)
def test_sessions_that_do_not_exist(two: Command, words, said):
    said(two.refuses("tune", "sessions", *words))
