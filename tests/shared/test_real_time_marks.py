"""Tests in real time run alone, and are inconclusive on a machine that stalls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import real_time

ROOT = Path(__file__).parents[2]
CONFTEST = "from tests.kit import real_time\n\ndef pytest_configure(config):\n    real_time.register(config)\n"
SETTINGS = "[pytest]\nmarkers = real_time: alone\n"
TESTS = """
import os, pathlib, pytest
here = pathlib.Path(__file__).parent

@pytest.mark.parametrize("number", range(4))
def test_beside_others(number):
    (here / f"{number}.{os.getpid()}").touch()

@pytest.mark.real_time
@pytest.mark.parametrize("number", range(2))
def test_alone(number):
    assert len([*here.glob("?.*")]) == 4, "not all others have ended"
    assert number == 0, "a defect"
"""


def results_of(folder: Path, *options: str) -> dict[str, str]:
    """Test -> how it ended."""
    for name, text in {"conftest.py": CONFTEST, "pytest.ini": SETTINGS, "test_both.py": TESTS}.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=no", *options, "."]
    done = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    rows = (line.split(" ", 1) for line in done.stdout.splitlines() if "test_both.py" in line)
    return {rest.partition("::")[2].split(" ")[0]: word for word, rest in rows if word in ("PASSED", "FAILED")}


@pytest.mark.parametrize("options", [("-n", "2"), ("-n", "0")], ids=["workers", "one process"])
def test_they_run_when_all_others_have_ended(tmp_path, options, monkeypatch):
    found = results_of(tmp_path, *options)
    assert found.pop("test_alone[0]") == "PASSED"
    assert found.pop("test_alone[1]", "") in ("FAILED", "")  # a machine that stalls meanwhile
    assert found == {f"test_beside_others[{number}]": "PASSED" for number in range(4)}


class Late:
    """A machine that keeps processes waiting for so long [ns]."""

    def __init__(self, late: int) -> None:
        self.late = late

    def longest(self, since_ns: int) -> int:
        return self.late


@pytest.mark.parametrize(("late", "outcome"), [(4_900_000, "failed"), (5_100_000, "skipped")])
def test_a_failure_of_a_machine_that_stalls_is_inconclusive(pytester_item, late, outcome):
    item, call = pytester_item
    judge = real_time.Judge()
    judge._watch = Late(late)
    steps = judge.pytest_runtest_makereport(item, call)
    next(steps)
    with pytest.raises(StopIteration) as stopped:
        steps.send(pytest.TestReport.from_item_and_call(item, call))
    report = stopped.value.value
    assert report.outcome == outcome
    if outcome == "skipped":
        assert "inconclusive: the machine kept a process waiting for 5.1 ms; it failed with: " in report.longrepr[2]


@pytest.fixture
def pytester_item(request):
    """This test, marked, and a call of it that failed."""
    item = request.node
    item.add_marker("real_time")

    def fails():
        raise AssertionError("too late")

    return item, pytest.CallInfo.from_call(fails, "call")


def test_the_watch_sees_how_long_a_process_waits():
    watch = real_time.Watch()
    watch._rows += [(10_000_000, 3_000_000), (20_000_000, 8_000_000), (40_000_000, 2_000_000)]
    assert watch.longest(0) == 8_000_000
    assert watch.longest(25_000_000) == 8_000_000  # it began before and ended after
    assert watch.longest(30_000_000) >= 2_000_000
    watch._process.kill()
    watch._process.wait()
    assert watch._process.stdout is not None
    watch._process.stdout.close()
