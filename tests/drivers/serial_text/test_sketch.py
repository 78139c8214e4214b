"""The sketch of the documentation, compiled for Linux with the pins of a simulated motor, behind the driver."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tty
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cosim.core.types import JointCommand, JointState
from cosim.plugins.drivers import serial_text
from cosim.plugins.drivers.serial_text.driver import TextDriver
from cosim.plugins.drivers.transport import now
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.families import PATIENCE, write_rig
from tests.drivers.bench import refused
from tests.kit.clock import MS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "drivers" / "serial_text.md"
SHIM = Path(__file__).with_name("Arduino.h")
START = 0.4  # rad, of the motor in the shim
QUANTUM = 2 * np.pi / 4096
pytestmark = pytest.mark.real_time  # what the board does in time is its own


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The compiled sketch."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on this machine")
    folder = tmp_path_factory.mktemp("sketch")
    (code,) = re.findall(r"```cpp\n(.*?)```", PAGE.read_text(), re.S)
    (folder / "sketch.cpp").write_text(code)
    words = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1", "-include", SHIM, "sketch.cpp", "-o", "sketch")
    subprocess.run([compiler, *words], cwd=folder, check=True, timeout=120)
    return folder / "sketch"


class Board:
    """A driver in front of the running sketch."""

    def __init__(self, driver: TextDriver, process: subprocess.Popen) -> None:
        self.driver, self.process, self.out = driver, process, JointState.zeros(1)

    def open_at_rest(self) -> None:
        """The encoder of the shim jumps to its start while the sketch begins: a velocity that is none."""
        self.driver.open()
        begun = now()
        self.until(lambda: self.out.t_ns > begun + 100 * MS and abs(self.out.velocity[0]) < 0.1, command=False)

    def until(self, seen, command: bool = True, **fields: float) -> None:
        """Repeat a command, or only read, until the condition is met."""
        end_ns = now() + round(PATIENCE * 1e9)
        cmd = JointCommand.zeros(1)
        while not seen():
            assert now() < end_ns, self.out
            for name, value in fields.items():
                getattr(cmd, name)[:] = value
            cmd.valid_until_ns = now() + 1000 * MS
            if command:
                self.driver.write(cmd, now() + 100 * MS)
            self.driver.read(self.out, now() + 100 * MS)

    def mean_velocity(self, span_ns: int, **fields: float) -> float:
        """By the positions and the clock of this machine, on which a board that waits for a processor is slow."""
        begun, position = self.out.t_ns, self.out.position[0]
        self.until(lambda: self.out.t_ns - begun > span_ns, **fields)
        return (self.out.position[0] - position) / ((self.out.t_ns - begun) * 1e-9)

    def words(self) -> str:
        return self.driver.describe_fault(0, int(self.out.fault[0]))


@contextlib.contextmanager
def running(
    program: Path, folder: Path, mode: str, watchdog: float = PATIENCE, limit: float = 0.3, **keys
) -> Iterator[Board]:
    """The driver of one joint and the sketch, at the two ends of a pseudo terminal. watchdog [s]: longer than a machine
    stalls, where it is not tested."""
    master, slave = os.openpty()
    tty.setraw(slave)
    process = subprocess.Popen([program], stdin=master, stdout=master)
    joints = {"a": {"id": 1, "model": "sketch", **keys}}
    port = {"port": os.ttyname(slave)}
    data = {
        "mechanism": {"gravity": [0, 0, 0], "bodies": [{"name": "a", "mass": 0.1, "inertia": [1e-3] * 3}]},
        "joints": {"a": {"limits": {"velocity": 15, "effort": limit}}},
        "drivers": [{"type": "serial_text", "mode": mode, "port": port, "watchdog": watchdog, "joints": joints}],
        "schedule": {"step": "20 ms"},
    }
    spec = read_rig(write_rig(folder / "rig.yaml", data))
    (context,) = Rig(spec, interpret=True).contexts.values()
    made = serial_text.load(spec.drivers[0].plugin.params, context)
    try:
        yield Board(made, process)
    finally:
        made.close()
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def test_the_sketch_measures_and_gives_an_effort(program, tmp_path):
    with running(program, tmp_path, "effort") as board:
        board.open_at_rest()
        assert board.out.position[0] == pytest.approx(START, abs=2 * QUANTUM)
        board.driver.enable("effort")
        board.until(lambda: board.out.velocity[0] > 5.0, effort=0.1)
        assert board.out.effort[0] == pytest.approx(0.1)
        board.until(lambda: board.out.velocity[0] < -5.0, effort=-0.1)
        assert not board.out.fault.any()


def test_the_sketch_holds_a_velocity(program, tmp_path):
    with running(program, tmp_path, "velocity") as board:
        board.open_at_rest()
        board.driver.enable("velocity")
        board.until(lambda: abs(board.out.velocity[0] - 6.0) < 0.5, velocity=6.0)
        board.until(lambda: board.mean_velocity(100 * MS, velocity=6.0) == pytest.approx(6.0, rel=0.15))


def test_the_sketch_holds_still_and_reaches_a_position(program, tmp_path):
    with running(program, tmp_path, "position", direction=-1, ratio=2, zero=0.1) as board:
        board.open_at_rest()
        board.driver.enable("position")
        board.driver.read(board.out, now() + 100 * MS)
        start = board.out.position[0]
        assert start == pytest.approx(0.1 - START / 2, abs=0.02)
        board.until(lambda: abs(board.out.position[0] - 0.7) < 0.01 and abs(board.out.velocity[0]) < 0.1, position=0.7)


def test_the_sketch_stops_without_commands_however_often_it_is_read(program, tmp_path, said):
    with running(program, tmp_path, "effort", watchdog=1.0) as board:
        board.open_at_rest()
        board.driver.enable("effort")
        board.until(lambda: board.out.velocity[0] > 5.0, effort=0.1)
        board.until(lambda: board.out.fault[0], command=False)
        said(board.words())
        assert board.out.effort[0] == 0.0
        assert "watchdog" in refused(board.driver.enable, "effort")
        board.driver.clear()
        board.driver.enable("effort")
        board.until(lambda: board.out.velocity[0] > 20.0, effort=0.1)


def test_a_fault_of_the_bridge_is_reported_until_it_is_cleared(program, tmp_path):
    with running(program, tmp_path, "effort") as board:
        board.driver.open()
        board.driver.enable("effort")
        board.until(lambda: board.out.effort[0] > 0, effort=0.1)
        board.process.send_signal(signal.SIGUSR1)
        board.until(lambda: board.out.fault[0], effort=0.1)
        assert board.words().startswith("overcurrent (drive error 2); ") and board.out.effort[0] == 0.0
        assert "the fault persists: overcurrent" in refused(board.driver.clear)
        board.process.send_signal(signal.SIGUSR1)
        board.driver.clear()
        board.driver.enable("effort")
        board.until(lambda: board.out.effort[0] > 0, effort=0.1)


def test_efforts_are_limited_on_the_board_too(program, tmp_path):
    with running(program, tmp_path, "velocity", limit=0.05) as board:
        board.open_at_rest()
        board.driver.enable("velocity")
        most = []
        board.until(lambda: most.append(board.out.effort[0]) or board.out.velocity[0] > 8.0, velocity=14.0)
        assert max(most) == pytest.approx(0.05, abs=1e-4)


def test_limits_beyond_the_boards_own_and_another_board_are_refused(program, tmp_path, said):
    for keys in ({"limit": 0.6}, {"model": "gripper"}):
        with running(program, tmp_path, "effort", **keys) as board:
            said(refused(board.driver.open))


def test_lines_that_are_damaged_or_too_long_are_dropped(program):
    text = b"Q1*61\nQ1\nQ2*63\nxxQ1*60\n" + b"9" * 500 + b"*60\nQ1*60\n"
    process = subprocess.run([program], input=text, capture_output=True, timeout=PATIENCE)
    assert [line[:2] for line in process.stdout.splitlines()] == [b"S1"]
