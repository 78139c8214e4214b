"""The loop of a motor's current as a drive samples it: a PI controller of each axis, whose voltage is held.

    u = K (i* − i) + I + u_e,   K = ω L,   T_i = L / R,

with the angular frequency ω = 2π · bandwidth and the voltage u_e that the motion induces. The zero of the controller
cancels the pole of the winding (internal model control; Harnefors and Nee, IEEE Trans. Industry Applications 34(1),
1998): without samples and delay the loop is i = ω / (s + ω) i*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosim.core.servo.cascade import CurrentLoop
from cosim.core.servo.pi import next_integral
from cosim.core.types import Numeric, State
from cosim.core.units import TURN
from cosim.mechanics.bondgraph.components._current_control import CurrentControl

Values = tuple[Numeric, ...]  # one for each axis


@dataclass(frozen=True)
class MachineWindings:
    """What the drive knows of the windings of its motor. axes: suffixes of the names of each; currents: their states;
    setpoints: (currents) of a torque of the motor at a speed [rad/s], within an amplitude of a phase [A]; induced:
    (voltages) by currents and speed; limited: (voltages) that the inverter can give; torque_constant: torque per
    amplitude of a phase [N·m/A].
    """

    axes: tuple[str, ...]
    currents: tuple[str, ...]
    resistance: float
    inductances: tuple[float, ...]
    setpoints: Callable[[Numeric, Numeric, Numeric], Values]
    induced: Callable[[Values, Numeric], Values]
    limited: Callable[[Values], Values]
    torque_constant: float


@dataclass(frozen=True)
class SampledCurrentLoop:
    windings: MachineWindings
    control: CurrentControl
    loop: CurrentLoop

    def __post_init__(self) -> None:
        """Raises ValueError for gains at which the loop is unstable: z^(1 + d) − z^d + ωT = 0 with a delay of d samples
        has a root beyond the unit circle."""
        largest = (1.0 if self.loop.delay else 2.0) * self.loop.rate / TURN
        if self.control.bandwidth >= largest:
            late = ", each late by one" if self.loop.delay else ""
            what = f"a bandwidth of {self.control.bandwidth:.4g} Hz is unstable with {self.loop.rate:.10g}"
            raise ValueError(
                f"{what} samples per second{late}; use less than {largest:.4g} Hz, at best a tenth of the rate"
            )

    def initial(self) -> State:
        """Voltages, integrals, and the voltages of the next sample if they are late; without currents."""
        names = ("voltage", "voltage_integral", *(("next_voltage",) if self.loop.delay else ()))
        return {f"{name}{axis}": np.zeros(()) for name in names for axis in self.windings.axes}

    def sampled(self, x: State, torque: Numeric, currents: Values, speed: Numeric, largest: Numeric) -> State:
        """The state after a sample. torque: setpoint, of the motor [N·m]; speed: of the motor [rad/s]; largest:
        amplitude of the current in a phase [A]."""
        w = self.windings
        errors = [a - b for a, b in zip(w.setpoints(torque, speed, largest), currents, strict=True)]
        proportional = [self.control.rate * L * e for L, e in zip(w.inductances, errors, strict=True)]
        integrals = [x[f"voltage_integral{axis}"] for axis in w.axes]
        parts = zip(proportional, integrals, w.induced(currents, speed), strict=True)
        wanted = tuple(p + i + e for p, i, e in parts)
        given = w.limited(wanted)
        state: State = {}
        for k, axis in enumerate(w.axes):
            fraction = w.resistance / w.inductances[k] / self.loop.rate
            integral = next_integral(integrals[k], fraction, proportional[k], wanted[k], given[k])
            state[f"voltage_integral{axis}"] = integral
            if self.loop.delay:
                state |= {f"voltage{axis}": x[f"next_voltage{axis}"], f"next_voltage{axis}": given[k]}
            else:
                state[f"voltage{axis}"] = given[k]
        return state
