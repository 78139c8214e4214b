"""Constant speed from the start on."""

import numpy as np

from cosim.plugin import PerJoint, param, params


@params
class Params:
    speed: PerJoint = param(unit="joint velocity")


class Steady:
    end = np.inf

    def __init__(self, params, start):
        self.speed, self.start = np.array(params.speed), start

    def sample(self, t):
        still = np.zeros(len(self.speed))
        return {"position": self.start + self.speed * t, "velocity": self.speed, "acceleration": still, "effort": still}


def load(params, joints, folder, start):
    return Steady(params, start)
