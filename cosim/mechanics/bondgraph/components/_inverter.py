"""What an inverter does to the commanded voltage, averaged over its switching periods.

Both switches of a half bridge are off for the dead time t_d after each change, and the diodes carry the current: of
each switching period the half bridge loses U_dc t_d against its current,

    Δu = −t_d f_s U_dc s(i),  s(i) = i / √(i² + i_0²)

(Jeong and Park, The analysis and compensation of dead-time effects in PWM inverters, IEEE Trans. Industrial Electronics
38(2), 1991). A full bridge has two of them in series. In the three phases of a machine the errors are six steps per
electrical turn with a fundamental of 4/π t_d f_s U_dc against the current; what is common to the phases drives none.
"""

from __future__ import annotations

import math

from cosim.core import ops
from cosim.core.types import Numeric, param, params

PHASES = tuple(2.0 * math.pi / 3.0 * k for k in range(3))


@params
class Inverter:
    dead_time: float = param(unit="s", min=0.0, doc="t_d")
    switching_frequency: float = param(unit="Hz", above=0.0, doc="f_s")
    supply_voltage: float = param(unit="V", above=0.0, doc="U_dc")
    rounding_current: float = param(unit="A", above=0.0, default=0.05, doc="i_0, below which the error fades out")

    def __post_init__(self) -> None:
        if self.dead_time * self.switching_frequency >= 0.5:
            raise ValueError("the dead time of both switches fills the switching period; lower one of both")

    @property
    def lost_voltage(self) -> float:
        """Of a half bridge [V]."""
        return self.dead_time * self.switching_frequency * self.supply_voltage

    def error(self, current: Numeric) -> Numeric:
        """Of a half bridge [V]."""
        return -self.lost_voltage * ops.smooth_sign(current, self.rounding_current)

    def errors(self, i_d: Numeric, i_q: Numeric, angle: Numeric) -> tuple[Numeric, Numeric]:
        """Of the axes d and q [V] at an electrical angle [rad], of currents as amplitudes of a phase."""
        d = q = 0.0
        for phase in PHASES:
            c, s = ops.cos(angle - phase), ops.sin(angle - phase)
            error = self.error(c * i_d - s * i_q)
            d, q = d + 2.0 / 3.0 * c * error, q - 2.0 / 3.0 * s * error
        return d, q
