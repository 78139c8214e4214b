"""The velocity and position loops of a drive, sample by sample on numbers: for emulated drives."""

from __future__ import annotations

import math

import numpy as np

from cosim.core.servo import cascade, encoder
from cosim.core.servo.cascade import DriveLimits, Measured, Mode, PositionLoop, ServoLoops, Setpoints, VelocityLoop
from cosim.core.types import State

# of a drive whose rig has no loops: N·m·s/rad and 1/s at the drive
DEFAULT = ServoLoops(velocity=VelocityLoop(gain=0.2), position=PositionLoop(gain=20.0, feedforward=0.0))


class CommandedLoops:
    """The servo loops of a joint, called once per sample of the velocity loop. Calls are in the coordinates of the
    drive: drive position = scale · (joint position − zero), joint effort = scale · drive effort."""

    def __init__(
        self, loops: ServoLoops = DEFAULT, ratio: float = 1.0, scale: float = 1.0, zero: float = 0.0, every: int = 1
    ) -> None:
        """ratio: turns of the motor per turn of the joint; every: samples of the velocity loop per sample of the
        position loop."""
        self.loops, self.ratio, self.scale, self.zero, self.every = loops, ratio, scale, zero, every
        self._encoder: State | None = None
        self.reset()

    def reset(self) -> None:
        """The drive is switched on, or changes its mode."""
        self._state, self._samples = cascade.initial(), 0

    def effort(
        self, mode: Mode, target: float, position: float, velocity: float, max_velocity: float, max_effort: float
    ) -> float:
        """Requested of the motor, not a number where an argument is not: target and state of the motor, and the limits
        of the drive [rad, rad/s, N·m]."""
        arguments = (target, position, velocity)
        if any(map(math.isnan, arguments)):
            return math.nan
        joint = position / self.scale + self.zero
        measured = self._measured(joint, velocity / self.scale)
        goal = target / self.scale
        wanted = Setpoints(goal + self.zero, 0.0, 0.0) if mode == "position" else Setpoints(0.0, goal, 0.0)
        slowest = self.loops.velocity.limit if self.loops.velocity else math.inf
        limits = DriveLimits(min(slowest, max_velocity / abs(self.scale)), max_effort * abs(self.scale))
        due = self._samples % self.every == 0, True
        self._samples += 1
        with np.errstate(over="ignore"):  # infinite setpoints are limited like large ones
            self._state = cascade.followed(self.loops, mode, self._state, wanted, measured, limits, due)
        return float(self._state["effort_setpoint"]) / self.scale

    def _measured(self, position: float, velocity: float) -> Measured:
        p = self.loops.encoder
        if p is None:
            return Measured(position, velocity, 1.0)
        assert self.loops.velocity is not None
        angle = self.ratio * position
        if self._encoder is None:
            self._encoder = encoder.initial(p, angle, self.ratio * velocity)
        x = self._encoder = encoder.sampled(p, self._encoder, angle, 1.0 / self.loops.velocity.rate)
        return Measured(encoder.read(p, x) / self.ratio, x["speed"] / self.ratio, encoder.known(p, x))
