"""The same drive simulated, and emulated behind a protocol: both run the same loops and move alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cosim.core.errors import InputErrors
from cosim.plugins.drivers.template import codec
from cosim.rig.emulate import emulation_of
from tests.kit.given import beside
from tests.kit.refusals import raised
from tests.kit.rigs import rig_in

GIVEN = beside(__file__)

MS = 1_000_000
ENCODER = "{cpr: 65536, velocity: observer, bandwidth: 400 Hz}"
RIG = GIVEN["rig"]
DRIVER = "drivers=[{type: template, mode: %s, bus: {interface: virtual, channel: loops}, joints: {axis: {id: 3, %s}}}]"
WIRING = "direction: -1, ratio: 20, zero: 0.2"  # drive position = −20 (q − 0.2)
# a controller that commands position and velocity
PUSH = GIVEN["push"]


def target(mode: str, t: float) -> float:
    """What is commanded of the drive."""
    if mode == "position":
        return -20.0 * (0.4 * (1.0 - np.cos(4.0 * np.pi * t)) - 0.2)
    return -20.0 * 0.4 * 4.0 * np.pi * np.sin(4.0 * np.pi * t)


@pytest.fixture
def rig_of(tmp_path):
    def load(*overrides: str) -> Any:
        (tmp_path / "push.py").write_text(PUSH)
        return rig_in(tmp_path, RIG, *overrides)

    return load


class Emulation:
    """Emulated drives whose time a test sets; frames arrive without delay."""

    def __init__(self, rig: Any) -> None:
        self.server = emulation_of(rig.spec, clock=lambda: 0)
        self.server._begun = self.server._due = 0
        self.motors, (connection,) = self.server.motors, self.server.connections
        self.drives, self.t_ns = connection.drives, 0
        self.motors.plant.begin(0)
        self.motors.measure()
        self.drives.reset(0)

    def send(self, kind: int, *values: float) -> None:
        self.drives.handle(codec.encode(kind, 3, *values), self.t_ns)

    def command(self, mode: str, value: float) -> None:
        self.send(codec.COMMAND, codec.MODES.index(mode), 10, 60_000, value)

    def advance(self) -> None:
        """One tick of the rig."""
        for _ in range(MS // self.server.step_ns):
            self.t_ns += self.server.step_ns
            self.server.advance(self.t_ns)

    @property
    def position(self) -> float:
        return float(self.motors.plant.sample[0][0])


@pytest.mark.parametrize(("mode", "encoder"), [("position", ENCODER), ("position", "null"), ("velocity", "null")])
def test_a_simulated_and_an_emulated_drive_move_alike(rig_of, mode: str, encoder: str) -> None:
    """An emulated drive acts on a command at the sample of its velocity loop that follows, 0.25 ms later: by no more
    than that the motion is late."""
    same = f"joints.axis.actuator.loops.encoder={encoder}", f"joints.axis.actuator.loops.mode={mode}"
    run = rig_of(*same).run()
    emulation = Emulation(rig_of(*same, DRIVER % (mode, WIRING)))
    assert emulation.server.step_ns == 250_000  # the velocity loop's
    emulation.send(codec.REQUEST, codec.ENABLE)
    positions = []
    for t in run.t:
        positions.append(emulation.position)
        emulation.command(mode, target(mode, t))
        emulation.advance()
    simulated = run["axis/position"]
    apart, fastest = np.abs(positions - simulated), np.abs(run["axis/velocity"]).max()
    assert np.ptp(simulated) > 0.5
    assert apart[40:].max() < 0.3e-3 * fastest
    # until the first command arrives it has no torque: it falls for a period
    assert apart[:40].max() < 2e-3


def test_a_late_command_is_all_that_is_different(rig_of) -> None:
    """At the rate of the velocity loop, with commands that arrive before a sample, both are the same to rounding."""
    rates = "joints.axis.actuator.loops.velocity.rate=1 kHz", "joints.axis.actuator.loops.velocity.gain=12"
    run = rig_of(*rates).run("0.2 s")
    emulation = Emulation(rig_of(*rates, DRIVER % ("position", WIRING)))
    emulation.send(codec.REQUEST, codec.ENABLE)
    positions = []
    for t in run.t:
        positions.append(emulation.position)
        emulation.command("position", target("position", t))
        # the sample of this time, before the motion that follows it
        emulation.drives.process(emulation.t_ns)
        emulation.server.motors.write_requests()
        emulation.motors.plant.advance()
        emulation.t_ns += MS
        emulation.motors.plant.begin(emulation.t_ns)
        emulation.motors.measure()
    np.testing.assert_allclose(positions, run["axis/position"], rtol=0, atol=1e-6)


def test_the_brake_of_an_emulated_drive_holds_while_it_is_off(rig_of) -> None:
    brake = "joints.axis.actuator.brake={effort: 30, opens: 20 ms, closes: 10 ms}"
    emulation = Emulation(rig_of(brake, DRIVER % ("position", WIRING)))

    def positions(ticks: int) -> list[float]:
        found = []
        for _ in range(ticks):
            emulation.advance()
            found.append(emulation.position)
        return found

    # off from the start: the load rests in the brake
    assert positions(30) == [0.0] * 30
    emulation.send(codec.REQUEST, codec.ENABLE)
    emulation.command("position", target("position", 0.0))
    # it opens after 20 ms, and the integral of the velocity loop takes the load over
    taken = positions(60)
    assert taken[:20] == [0.0] * 20 and 1e-4 < max(taken) < 5e-3
    emulation.send(codec.COMMAND, 0, 0, 0, 0.0)
    fallen = positions(60)
    # it falls until the brake has closed, and stays
    assert fallen[9] > fallen[0] and fallen[40] > 1e-4 and np.ptp(fallen[40:]) == 0.0


def test_a_velocity_loop_that_fits_no_step_is_refused(rig_of) -> None:
    rates = ("schedule.step=3 ms", "joints.axis.actuator.loops={velocity: {rate: 7000, gain: 1}, mode: velocity}")
    rig = rig_of(*rates, DRIVER % ("velocity", WIRING), "joints.axis.actuator.loops.position=null")
    assert str(raised(InputErrors, emulation_of, rig.spec)).endswith(
        ": a step of 3 ms is no whole number of its samples, 143 µs each, in whole nanoseconds; change the rate to"
        " emulate the drive"
    )
