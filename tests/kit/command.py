"""The command line in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cosim.cli.main import main
from cosim.output import slow_code

RIG = """\
name: swing
description: A link is held by a PID controller.
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints:
  hinge:
    initial: {position: 10 deg}
controllers:
  - {name: hold, type: pid, kp: 50, ki: 10, kd: 5, trajectory: {type: quintic, goal: 30 deg, duration: 0.5}}
schedule: {duration: 0.4 s}
"""


class Command:
    """The `cosim` command in this process, in its own folder."""

    rig = RIG  # what is in `rig.yaml`

    def __init__(self, capsys, monkeypatch):
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments):
        """(exit code, stdout, lines of stderr)."""
        self.monkeypatch.setattr(sys, "argv", ["cosim", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as leave:
            code = leave.code
        out, err = self.capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err.splitlines()

    def prints(self, *arguments):
        """The stdout of what goes well, without a line on stderr."""
        code, out, err = self(*arguments)
        assert (code, err) == (0, []), err
        return out

    def refuses(self, *arguments):
        """The lines of stderr for wrong input, which has no output."""
        code, out, err = self(*arguments)
        assert (code, out) == (2, "")
        return err


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    # tests are no user's code: on a busy machine they take so long that a line would name them
    monkeypatch.setattr(slow_code, "OTHERS", (*slow_code.OTHERS, Path(__file__).parents[1]))
    monkeypatch.delenv("COSIM_INTERPRET", raising=False)
    Path("rig.yaml").write_text(RIG)
    return Command(capsys, monkeypatch)
