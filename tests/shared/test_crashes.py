"""A worker that ends suddenly says how it ended in the report of its test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import crashes

ROOT = Path(__file__).parents[2]
CONFTEST = "from tests.kit import crashes\n\ndef pytest_configure(config):\n    crashes.register(config)\n"
ENDS = {
    "fault": ("import ctypes; ctypes.string_at(8)", ["signal SIGSEGV", "test_ends.py", "string_at"]),
    "signal": ("import os; os.kill(os.getpid(), 9)", ["signal SIGKILL"]),
    "exit": ("import os; os._exit(7)", ["exit code 7"]),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_report_says_how_its_process_ended(end, tmp_path):
    code, words = ENDS[end]
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_ends.py").write_text(f"def test_it():\n    {code}\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", "-rN", "."]
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    report = done.stdout.partition("= FAILURES =")[2]
    assert done.returncode == 1 and all(word in report for word in words), done.stdout + done.stderr
    assert not any(f"/site-packages/{name}/" in report for name in crashes.RUNNERS)
