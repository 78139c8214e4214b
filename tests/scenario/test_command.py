"""`cosim scenario`: table, exit codes, JUnit XML, JSON, recordings, and mistakes in one line each."""

from __future__ import annotations

import json

import pytest
from junitparser import Failure, JUnitXml

from tests.kit.command import Command
from tests.scenario.helpers import SIM, fault, file_of, scenario

JUMP = fault("encoder_jump", joint="elbow", size=0.2)
LIMIT = {"joints.all.limits.tracking": "5 deg"}
GOOD = {"jump": scenario("stopped within 1 tick by tracking of elbow", JUMP)}
BAD = {"slow & <late>": scenario(["stopped within 1 tick by not_finite", "elbow/position at most 1 deg"], JUMP)}


@pytest.fixture
def cosim(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return Command(capsys, monkeypatch)


def test_a_table_with_what_happened(cosim, tmp_path):
    code, out, err = cosim("scenario", SIM, file_of(tmp_path, GOOD, **LIMIT))
    assert code == 0 and not err
    (row,) = (line for line in out.splitlines() if line.strip().startswith("jump"))
    for cell in ("encoder_jump at elbow", "stopped by tracking of elbow", "1 tick, 1 ms", "ok"):
        assert cell in row


def test_a_failure_ends_with_exit_code_1_and_says_why(cosim, tmp_path):
    file = file_of(tmp_path, GOOD | BAD, **LIMIT)
    code, out, err = cosim("scenario", SIM, file, "--record", "failed")
    assert code == 1 and err == [f"{SIM}: 1 of 2 scenarios failed: slow & <late>"]
    lines = out.splitlines()
    k = next(k for k, line in enumerate(lines) if line.startswith("slow & <late>: "))
    assert "stopped by tracking of elbow, not by not_finite; elbow/position was " in lines[k]
    assert lines[k + 1] == "  t = 0.7 s: encoder jump at elbow begins"
    assert lines[k + 2].startswith("  stopped at tick 700 (t = 0.7 s): joint 'elbow' is 0.2")
    assert lines[k + 3] == "  recording: failed/slow_late_.mcap" and (tmp_path / "failed/slow_late_.mcap").is_file()


def test_junit_xml_that_a_reader_of_continuous_integration_reads(cosim, tmp_path):
    code, *_ = cosim("scenario", SIM, file_of(tmp_path, GOOD | BAD, **LIMIT), "--junit", "out.xml")
    assert code == 1
    suites = JUnitXml.fromfile(str(tmp_path / "out.xml"))
    (suite,) = suites
    assert (suite.name, suite.tests, suite.failures, suite.errors) == ("arm_sim", 2, 1, 0)
    good, bad = suite
    assert (good.name, good.classname, good.is_passed) == ("jump", "arm_sim", True)
    assert bad.name == "slow & <late>" and not bad.is_passed
    (failure,) = bad.result
    assert isinstance(failure, Failure) and failure.message.startswith(
        "stopped by tracking of elbow, not by not_finite"
    )
    assert "expected: stopped within 1 tick by not_finite\n" in failure.text and "stopped at tick 700" in failure.text


def test_json(cosim, tmp_path):
    code, out, _ = cosim("scenario", SIM, file_of(tmp_path, GOOD | BAD, **LIMIT), "--json", "-", "--only", "jump")
    (result,) = json.loads(out)
    assert code == 0 and result["ok"] and result["reaction_ticks"] == 1 and result["happened"].startswith("stopped by")
    cosim("scenario", SIM, file_of(tmp_path, GOOD, **LIMIT), "--json", "out.json")
    assert [each["name"] for each in json.loads((tmp_path / "out.json").read_text())] == ["jump"]


def test_mistakes_on_the_command_line(cosim, tmp_path):
    file = file_of(tmp_path, GOOD)
    for words, message in (
        ((file, "--only", "jmp"), "--only: there is no scenario 'jmp'; did you mean 'jump'?"),
        ((file, "--jobs", "0"), "--jobs: 0 is no number of processes; give 1 or more"),
        ((), f"{SIM}: there are no scenarios; add a section 'scenario', or name a file with one"),
        (
            (file, "--junit", "out.txt"),
            "--junit: out.txt: the file must have the suffix .xml; choose another name",
        ),
    ):
        code, out, err = cosim("scenario", SIM, *words)
        assert (code, out) == (2, "")
        assert err == [message]


def test_two_scenarios_of_one_name(cosim, tmp_path):
    one, two = file_of(tmp_path, GOOD, "one.yaml"), file_of(tmp_path, GOOD, "two.yaml")
    code, _, err = cosim("scenario", SIM, one, two)
    first = f"{one}:2 scenario.jump"
    what = f"there is a scenario 'jump' already, at {first}; give this one another name"
    assert (code, err) == (2, [f"{two}:2 scenario.jump: {what}"])


def test_a_signal_that_the_rig_does_not_have(cosim, tmp_path):
    file = file_of(tmp_path, {"one": scenario(["elbow/positon at most 2 deg"], JUMP)})
    code, _, err = cosim("scenario", SIM, file)
    what = "no signal 'elbow/positon'; did you mean 'elbow/position'?"
    assert (code, err) == (2, [f"{file}:9 scenario.one.expect[0]: {what}"])


def test_a_file_with_neither_scenarios_nor_values(cosim, tmp_path):
    (tmp_path / "empty.yaml").write_text("")
    code, _, err = cosim("scenario", SIM, "empty.yaml")
    assert (code, err) == (2, ["empty.yaml: the file is empty; it needs at least a 'scenario'"])
