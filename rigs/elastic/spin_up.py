"""Smooth spin-up to a constant speed: the acceleration is (speed / time) (1 − cos 2πt/time) until it is reached."""

import numpy as np

from cosim.plugin import PerJoint, ops, param, params

TURN = 2.0 * np.pi


@params
class Params:
    speed: PerJoint = param(unit="joint velocity", default=6.0)
    time: float = param(unit="s", above=0.0, default=15.0)


class SpinUp:
    end = np.inf

    def __init__(self, params, start):
        self.speed, self.time, self.start = np.array(params.speed), params.time, start

    def sample(self, t):
        within = ops.minimum(t, self.time)
        after, phase = t - within, TURN * within / self.time
        path = within**2 / 2.0 + (self.time / TURN) ** 2 * (ops.cos(phase) - 1.0)
        return {
            "position": self.start + self.speed * (path / self.time + after),
            "velocity": self.speed / self.time * (within - self.time / TURN * ops.sin(phase)),
            "acceleration": self.speed / self.time * (1.0 - ops.cos(phase)),
            "effort": np.zeros(len(self.speed)),
        }


def load(params, joints, folder, start):
    return SpinUp(params, start)
