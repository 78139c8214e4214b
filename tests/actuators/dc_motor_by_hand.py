"""The equations of a DC motor with a gear, written by hand: what its bond graph must give."""

from typing import Any

from cosim.core.units import TURN
from cosim.mechanics.bondgraph.components.dc_motor import Params, gear_friction


def flow(p: Params, x: dict[str, float], u: dict[str, float]) -> tuple[dict[str, float], dict[str, Any]]:
    """(rates, outputs); x: current [A]; of an elastic gear also twist [rad], and speed of the motor [rad/s] / ratio."""
    current, per_ampere = x["current"], p.torque_constant * p.ratio
    speed = x.get("speed", u["velocity"])
    target = min(max(u["request"] / per_ampere, -p.current_limit), p.current_limit)
    voltage = p.resistance * target
    if p.drive == "current":
        voltage += per_ampere * speed + p.inductance * TURN * p.bandwidth * (target - current)
    voltage = min(max(voltage, -p.voltage_limit), p.voltage_limit)
    torque = per_ampere * current
    friction = gear_friction(torque, speed, p.viscous, p.coulomb, p.efficiency)
    effort, dx = torque - friction, {"current": (voltage - p.resistance * current - per_ampere * speed) / p.inductance}
    loss, stored = p.resistance * current**2 + friction * speed, 0.5 * p.inductance * current**2
    if "speed" in x:
        rate, inertia = speed - u["velocity"], p.rotor_inertia * p.ratio**2
        motor, effort = effort, p.stiffness * x["twist"] + p.damping * rate
        dx |= {"twist": rate, "speed": (motor - effort) / inertia}
        loss += p.damping * rate**2
        stored += 0.5 * inertia * speed**2 + 0.5 * p.stiffness * x["twist"] ** 2
    outputs = {"effort": effort, "power": voltage * current, "loss": loss, "stored": stored}
    return dx, outputs | {"current": current, "voltage": voltage}
