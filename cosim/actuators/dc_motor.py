"""Permanent-magnet DC motor with drive electronics and a gear (theory §9).

    L i̇ = U − R i − K ω        torque K i        ω = u θ̇
    rigid gear:    effort = u K i − friction(θ̇), the reflected inertia u² J is added to the joint
    elastic gear:  u² J θ̈ = u K i − friction(θ̇) − M_s,   effort = M_s = k (θ − q) + b (θ̇ − q̇)

θ is the motor's angle divided by the ratio u. The drive turns the requested effort into a current and, with
`drive: current`, closes a current loop of the given bandwidth with back-EMF compensation; with
`drive: voltage` it applies the voltage that gives that effort at standstill. Both saturate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from cosim import ops
from cosim.actuators._friction import gear_friction
from cosim.types import ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, Numeric, Signal, Signals, State, param, params
from cosim.units import TURN


@params
class Params:
    resistance: float = param(unit="ohm", above=0.0, doc="R")
    inductance: float = param(unit="H", above=0.0, doc="L")
    torque_constant: float = param(unit="N*m/A", above=0.0, doc="K, also the back-EMF constant in V·s/rad")
    rotor_inertia: float = param(unit="kg*m^2", min=0.0, doc="J, at the motor's shaft")
    voltage_limit: float = param(unit="V", above=0.0, default=math.inf)
    current_limit: float = param(unit="A", above=0.0, default=math.inf)
    ratio: float = param(unit="joint ratio", above=0.0, default=1.0, doc="turns of the motor per turn of the joint")
    efficiency: float = param(above=0.0, max=1.0, default=1.0, doc="of the gear mesh, in both directions")
    viscous: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="friction at the joint")
    coulomb: float = param(unit="N*m", min=0.0, default=0.0, doc="friction at the joint")
    stiffness: float = param(unit="N*m/rad", above=0.0, default=math.inf, doc="of the gear, at the joint")
    damping: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="of the gear's elasticity, at the joint")
    drive: Literal["current", "voltage"] = param(default="current")
    bandwidth: float = param(unit="Hz", above=0.0, default=200.0, doc="of the current loop")

    def __post_init__(self) -> None:
        elastic = math.isfinite(self.stiffness)
        if elastic and self.rotor_inertia == 0.0:
            raise ValueError("an elastic gear needs a rotor_inertia above 0; set it, or remove stiffness")
        if self.damping and not elastic:
            raise ValueError("damping is that of an elastic gear; give stiffness too, or leave damping out")


class DcMotor:
    inputs = ACTUATOR_INPUTS
    outputs: ClassVar[Signals] = {**ACTUATOR_OUTPUTS, "current": Signal((), "A"), "voltage": Signal((), "V")}

    def __init__(self, params: Params) -> None:
        self.params = params
        self.elastic = not ops.is_infinite(params.stiffness)
        rotor = params.rotor_inertia * params.ratio**2
        self.reflected_inertia = 0.0 if self.elastic else rotor
        self.rates: Mapping[str, str] = {"angle": "speed"} if self.elastic else {}

    def initial(self, position: float, velocity: float) -> State:
        state: State = {"current": np.zeros(())}
        if self.elastic:
            state |= {"angle": np.array(float(position)), "speed": np.array(float(velocity))}
        return state

    def voltage(self, p: Params, request: Numeric, current: Numeric, speed: Numeric) -> Numeric:
        """The motor voltage [V]; `speed` is that of the motor, divided by the ratio."""
        target = _saturate(request / (p.torque_constant * p.ratio), p.current_limit)
        voltage = p.resistance * target
        if p.drive == "current":
            back_emf = p.torque_constant * p.ratio * speed
            voltage = voltage + back_emf + p.inductance * TURN * p.bandwidth * (target - current)
        return _saturate(voltage, p.voltage_limit)

    def flow(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        current = x["current"]
        speed = x["speed"] if self.elastic else u["velocity"]
        voltage = self.voltage(p, u["request"], current, speed)
        per_ampere = p.torque_constant * p.ratio
        change = (voltage - p.resistance * current - per_ampere * speed) / p.inductance
        torque = per_ampere * current
        friction = gear_friction(torque, speed, p.viscous, p.coulomb, p.efficiency)
        loss = p.resistance * current * current + friction * speed
        stored = 0.5 * p.inductance * current * current
        dx: State = {"current": change}
        effort = torque - friction
        if self.elastic:
            twist, relative_speed = x["angle"] - u["position"], speed - u["velocity"]
            rotor = p.rotor_inertia * p.ratio**2
            motor_effort, effort = effort, p.stiffness * twist + p.damping * relative_speed
            dx |= {"angle": speed, "speed": (motor_effort - effort) / rotor}
            loss = loss + p.damping * relative_speed * relative_speed
            stored = stored + 0.5 * rotor * speed * speed + 0.5 * p.stiffness * twist * twist
        y = {"effort": effort, "power": voltage * current, "loss": loss, "stored": stored}
        return dx, {**y, "current": current, "voltage": voltage}


def _saturate(value: Numeric, limit: Numeric) -> Numeric:
    return value if ops.is_infinite(limit) else ops.clip(value, -limit, limit)


def load(params: Params) -> DcMotor:
    return DcMotor(params)
