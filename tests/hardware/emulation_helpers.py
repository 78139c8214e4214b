"""Shared by the tests of emulation."""

import math
from types import SimpleNamespace

import numpy as np

from cosim.execution.hardware.emulation.fault_injection import FaultInjection
from cosim.execution.hardware.emulation.motors import EmulatedMotor, MotorWiring
from tests.kit.clock import MS


class Plant:
    """Joints whose state a test sets."""

    def __init__(self, n=2, step_ns=MS):
        self.tick_model = SimpleNamespace(step_ns=step_ns)
        self.sample = tuple(np.zeros(n) for _ in range(3))
        self.requested, self.enabled, self.log = np.zeros(n), np.zeros(n), []

    def begin(self, t_ns):
        self.t_ns = t_ns
        self.log.append(t_ns)

    def measure(self):
        return self.sample

    def request(self, index, effort):
        self.requested[index] = effort

    def enable(self, index, enabled):
        self.enabled[index] = enabled

    def advance(self):
        self.log.append("step")


def motor_of(**keys):
    given = {"torque_constant": 0.5, "max_effort": 2.0, "max_velocity": 50.0, "max_temperature": 80.0}
    return EmulatedMotor(**(given | {"voltage": 24.0, "temperature": 25.0} | keys))


def wired(index=0, scale=1.0, zero=0.0, ambient=25.0, temperature_rise=40.0, thermal_time_constant=120.0):
    return MotorWiring(index, scale, zero, ambient, temperature_rise, thermal_time_constant)


def spec(kind="drop", **keys):
    rest = {"driver": "line", "joint": "", "at": 0.0, "signal": "", "factor": 1.0, "bound": 0.0, "duration": math.inf}
    return FaultInjection(
        **{**rest, "fraction": 1.0, "delay": 0.01, "size": 0.1, "cause": "encoder", "kind": kind, **keys}
    )
