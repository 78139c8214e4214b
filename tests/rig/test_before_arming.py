"""What ends a run of real motors before one of them is on: the first calls of controllers, and drives that refuse."""

from __future__ import annotations

import pytest

from cosim import load_rig
from cosim.core.errors import InputError, RunError
from cosim.plugins.drivers import moteus
from tests.kit.hardware import HardwareStub
from tests.kit.refusals import raised
from tests.kit.rigs import controller

RIG = """\
mechanism: {bodies: [{name: a, axis: [0, 0, 1], mass: 1, inertia: [0.1, 0.1, 0.1]}]}
joints: {a: {limits: {lower: -4, upper: 4, velocity: 20, effort: 100}}}
drivers:
  - {type: moteus, bus: {interface: virtual, channel: none, fd: true}, joints: {a: {id: 1}}}
controllers:
  - {name: arm, type: push.py}
schedule: {step: 5 ms, duration: 50 ms}
"""
HIDDEN = "self.calls = getattr(self, 'calls', 0) + 1\neffort = np.array([float(q[0]) * np.nan])"  # not to be traced


class Refusing(HardwareStub):
    """A drive at 0 that does not switch on."""

    modes, joints, why_not_compiled = frozenset({"effort"}), ("a",), "a stub"

    def __init__(self, log):
        self.log, self.looks, self.link = log, 0, Link()

    def open(self):
        self.log.append("open")

    def enable(self, mode):
        self.log.append("enable")
        raise RunError("joint 'a': node 1 did not switch on within 1 s; check its supply")

    def read(self, out, deadline_ns):
        self.looks += 1
        out.position[:], out.t_ns = 0.0, self.looks

    def write(self, cmd, deadline_ns):
        pass

    def stop(self):
        pass

    close = stop


class Link:
    name, lost = "stub", False

    def reserve(self, items):
        pass


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(lines of the controller): (the error, what was done with the drive)."""

    def made(lines):
        (tmp_path / "rig.yaml").write_text(RIG)
        (tmp_path / "push.py").write_text(controller(lines))
        log = []
        monkeypatch.setattr(moteus, "load", lambda params, context: Refusing(log))
        return raised((InputError, RunError), load_rig(tmp_path / "rig.yaml").run, allow_turns=True), log

    return made


def test_a_first_command_that_is_not_finite_is_refused_before_a_drive_is_opened(run, said):
    error, log = run("effort = q * np.nan")
    assert log == []
    said(error)


def test_a_controller_in_python_is_not_called_twice(run):
    assert run(HIDDEN)[1] == ["open", "enable"]


def test_a_drive_that_does_not_switch_on_has_the_path_of_the_rig(run, said):
    error, log = run("effort = q")
    assert log == ["open", "enable"]
    said(error)
