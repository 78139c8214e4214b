"""`cosim scenario`: table, exit codes, JUnit XML, JSON, recordings, and mistakes in one line each."""

import json
from pathlib import Path

import pytest
from junitparser import Failure, JUnitXml

from tests.scenario.helpers import AT, SIM, SOON, fault, file_of, scenario

JUMP = fault("encoder_jump", joint="elbow", size=0.2)
GOOD = {"jump": scenario("stopped within 1 tick by tracking of elbow", JUMP)}
BAD = {"slow & <late>": scenario(["stopped within 1 tick by not_finite", "elbow/position at most 1 deg"], JUMP)}


VALUES = {"joints.all.limits.tracking": "5 deg", **SOON}
TICK = round(1e3 * AT)


def test_a_failure_ends_with_exit_code_1_and_says_why(command, tmp_path):
    """On the terminal, in JUnit XML that a reader of continuous integration reads, and as JSON."""
    file = file_of(tmp_path, GOOD | BAD, **VALUES)
    written = "--record", "failed", "--junit", "out.xml", "--json", "out.json"
    code, out, err = command("scenario", SIM, file, *written)
    assert code == 1 and err == [f"{SIM}: 1 of 2 scenarios failed: slow & <late>"]
    lines = out.splitlines()
    (row,) = (line for line in lines if line.strip().startswith("jump"))
    for cell in ("encoder_jump at elbow", "stopped by tracking of elbow", "1 tick, 1 ms", "ok"):
        assert cell in row
    k = next(k for k, line in enumerate(lines) if line.startswith("slow & <late>: "))
    assert "stopped by tracking of elbow, not by not_finite; elbow/position was " in lines[k]
    assert lines[k + 1] == f"  t = {AT:g} s: encoder jump at elbow begins"
    assert lines[k + 2].startswith(f"  stopped at tick {TICK} (t = {AT:g} s): joint 'elbow' is 0.")
    assert lines[k + 3] == "  recording: failed/slow_late_.mcap" and (tmp_path / "failed/slow_late_.mcap").is_file()
    (suite,) = JUnitXml.fromfile("out.xml")
    assert (suite.name, suite.tests, suite.failures, suite.errors) == ("arm_sim", 2, 1, 0)
    good, bad = suite
    assert (good.name, good.classname, good.is_passed) == ("jump", "arm_sim", True)
    assert bad.name == "slow & <late>" and not bad.is_passed
    (failure,) = bad.result
    assert isinstance(failure, Failure) and failure.message.startswith("stopped by tracking of elbow, not by not_fin")
    assert "expected: stopped within 1 tick by not_finite\n" in failure.text and f"at tick {TICK}" in failure.text
    good, bad = json.loads(Path("out.json").read_text())
    assert good["name"] == "jump" and good["ok"] and good["reaction_ticks"] == 1
    assert good["happened"].startswith("stopped by") and (bad["name"], bad["ok"]) == (*BAD, False)


WRONG = {
    "no scenario": ("FILE", "--only", "jmp"),
    "no processes": ("FILE", "--jobs", "0"),
    "no file": (),
    "no XML": ("FILE", "--junit", "out.txt"),
    "a name twice": ("FILE", "OTHER"),
    "no signal": ("SIGNAL",),
    "empty": ("empty.yaml",),
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_mistakes_in_one_line(command, tmp_path, words, said):
    files = {"FILE": file_of(tmp_path, GOOD, "one.yaml"), "OTHER": file_of(tmp_path, GOOD, "two.yaml")}
    files["SIGNAL"] = file_of(tmp_path, {"one": scenario(["elbow/positon at most 2 deg"], JUMP)}, "signal.yaml")
    Path("empty.yaml").write_text("")
    (error,) = command.refuses("scenario", SIM, *(files.get(word, word) for word in words))
    said(error.replace(str(SIM.parent), "<rigs>"))


def test_json_on_the_terminal(command, tmp_path):
    file = file_of(tmp_path, GOOD | BAD, **VALUES)
    code, out, err = command("scenario", SIM, file, "--only", "jump", "--json", "-")
    assert code == 0 and not err and [each["name"] for each in json.loads(out)] == ["jump"]
