"""A DC motor with gear for a joint of which only the greatest effort and velocity are known."""

from __future__ import annotations

from cosim.core.units import RPM

SUPPLY = 48.0  # V
SPEED = 4000.0 * RPM  # of the motor at the velocity limit of the joint
BACK_EMF, DROP = 0.7, 0.2  # of the supply at the velocity limit, and at the effort limit across the resistance
ELECTRICAL = 2e-3  # s, time constant of the winding
RUN_UP = 0.02  # s
CURRENT_BANDWIDTH = 100.0  # Hz


def reflected_inertia(effort: float, velocity: float) -> float:
    """Of a rotor that the effort alone brings to the velocity in the run-up time, at the joint [kg m² or kg]."""
    return effort * RUN_UP / velocity


def motor_keys(effort: float, velocity: float, rotor: float) -> dict[str, str]:
    """The keys of a `dc_motor` that reaches the effort [N·m or N] at the velocity [rad/s or m/s].

    The gear ratio follows from the speed, the torque constant from the back-EMF, the resistance and the current from
    what the supply has left. rotor: reflected inertia [kg m² or kg].
    """
    ratio = SPEED / velocity
    constant = BACK_EMF * SUPPLY / SPEED
    current = effort / (constant * ratio)
    resistance = DROP * SUPPLY / current
    return {
        "resistance": f"{resistance:.3g} ohm",
        "inductance": f"{resistance * ELECTRICAL:.3g} H",
        "torque_constant": f"{constant:.3g} N*m/A",
        "rotor_inertia": f"{rotor / ratio**2:.3g} kg*m^2",
        "ratio": f"{ratio:.4g}",
        "voltage_limit": f"{SUPPLY:g} V",
        "current_limit": f"{current:.3g} A",
        "bandwidth": f"{CURRENT_BANDWIDTH:g} Hz",
    }
