"""What a drive knows of its field: the angle by which it turns its axes d and q, and the currents that it measures.

With an error δ of the electrical angle, the drive controls the currents of axes that are turned by δ: at a setpoint i*
of its own axis q the machine has i_q = i* cos δ and i_d = −i* sin δ. The angle φ of the rotor, of p electrical angles,

- is off by `offset`, by p e sin φ of an eccentric disc, and by p ω T where it is late by T;
- is the angle of a sine and a cosine with n periods per turn, of a resolver or an encoder with analogue signals:
  n φ' = atan2((1 + g) sin(n φ + β) + o_s, cos n φ + o_c);
- comes in whole counts, or from three Hall switches, as the middle of one of six sectors.

The phases have the currents i_k = i_d cos(θ − k 2π/3) − i_q sin(θ − k 2π/3), of which (1 + g_k) i_k + o_k is measured,
with white noise. An offset makes the torque ripple once per electrical turn, a gain twice (Chung and Sul, Analysis and
compensation of current measurement error in vector-controlled AC motor drives, IEEE Trans. Industry Applications 34(2),
1998), Hall switches six times. The noise is of Park and Miller's generator, the same in every run.
"""

from __future__ import annotations

import numpy as np

from cosim.core import ops
from cosim.core.servo.encoder import MOST_ECCENTRIC
from cosim.core.types import Numeric, State, param, params
from cosim.core.units import TURN

SECTOR = TURN / 6.0
# s' = 7⁵ s mod 2³¹ − 1 (Park and Miller, Random number generators: good ones are hard to find, CACM 31(10), 1988)
FACTOR, MODULUS, FIRST = 16807.0, 2147483647.0, 20240229.0
PHASES = tuple(TURN / 3.0 * k for k in range(3))


@params
class Commutation:
    offset: float = param(unit="rad", default=0.0, doc="of the field angle, electrical")
    delay: float = param(unit="s", min=0.0, max=0.01, default=0.0, doc="T, age of the angle")
    hall: bool = param(default=False, doc="three switches: the middle of one of six sectors")
    cpr: int | None = param(min=1, default=None, doc="counts per revolution of the motor; none: exact")
    eccentricity: float = param(
        unit="rad", min=0.0, max=MOST_ECCENTRIC, default=0.0, doc="e, amplitude once per turn of the motor"
    )
    periods: int = param(min=1, default=1, doc="n, of sine and cosine per turn of the motor")
    sine_gain: float = param(unit="1", above=-1.0, default=0.0, doc="g, amplitude of the sine too much")
    phase: float = param(unit="rad", default=0.0, doc="β, sine and cosine too far apart")
    sine_offset: float = param(unit="1", default=0.0, doc="o_s, per amplitude")
    cosine_offset: float = param(unit="1", default=0.0, doc="o_c, per amplitude")
    current_gains: tuple[float, float, float] = param(unit="1", default=(0.0, 0.0, 0.0), doc="g_k of the phases")
    current_offsets: tuple[float, float, float] = param(unit="A", default=(0.0, 0.0, 0.0), doc="o_k of the phases")
    current_noise: float = param(unit="A", min=0.0, default=0.0, doc="standard deviation in a phase")

    def __post_init__(self) -> None:
        if self.hall and self.cpr is not None:
            raise ValueError("hall switches have no counts; give either hall or cpr")
        if self.hall and self._analogue:
            raise ValueError("hall switches have no sine and cosine; take their errors out, or hall")

    @property
    def of_turns(self) -> bool:
        """Whether an error of it repeats per turn of the motor."""
        return self.cpr is not None or self.eccentricity > 0.0 or self._analogue

    @property
    def _analogue(self) -> bool:
        return any((self.sine_gain, self.phase, self.sine_offset, self.cosine_offset))

    def initial(self) -> State:
        return {"noise": np.array(FIRST)} if self.current_noise else {}

    def angle_error(self, pole_pairs: float, angle: Numeric, speed: Numeric) -> Numeric:
        """δ [rad] at this angle [rad or m] and speed of the rotor; pole_pairs: electrical angle per travel."""
        error = self.offset - pole_pairs * speed * self.delay
        if self.eccentricity:
            error = error + pole_pairs * self.eccentricity * ops.sin(angle)
        if self._analogue:
            error = error + pole_pairs / self.periods * self._of_sine_and_cosine(self.periods * angle)
        known = pole_pairs * angle + error
        if self.hall:
            error = error + (ops.floor(known / SECTOR) + 0.5) * SECTOR - known
        elif self.cpr is not None:
            error = error + ops.quantised(known, pole_pairs * TURN / self.cpr) - known
        return error

    def _of_sine_and_cosine(self, angle: Numeric) -> Numeric:
        """Error of their angle [rad]."""
        s, c = ops.sin(angle), ops.cos(angle)
        sine = (1.0 + self.sine_gain) * ops.sin(angle + self.phase) + self.sine_offset
        cosine = c + self.cosine_offset
        return ops.atan2(sine * c - cosine * s, cosine * c + sine * s)

    def measured(
        self, i_d: Numeric, i_q: Numeric, theta: Numeric, error: Numeric, noise: tuple[Numeric, ...]
    ) -> tuple[Numeric, Numeric]:
        """The currents in the axes of the drive [A], of the amplitude of a phase; theta: electrical angle; error: of
        it; noise: of the phases [A]."""
        d = q = 0.0
        for phase, gain, offset, random in zip(PHASES, self.current_gains, self.current_offsets, noise, strict=True):
            current = i_d * ops.cos(theta - phase) - i_q * ops.sin(theta - phase)
            seen = (1.0 + gain) * current + offset + random
            d = d + 2.0 / 3.0 * seen * ops.cos(theta + error - phase)
            q = q - 2.0 / 3.0 * seen * ops.sin(theta + error - phase)
        return d, q

    def noise(self, x: State) -> tuple[State, tuple[Numeric, ...]]:
        """(The next state, the noise of the phases [A]), by Box and Muller."""
        if not self.current_noise:
            return {}, (0.0, 0.0, 0.0)
        seed, uniform = x["noise"], []
        for _ in range(4):
            seed = ops.remainder(FACTOR * seed, MODULUS)
            uniform.append(seed / MODULUS)
        radii = [self.current_noise * ops.sqrt(-2.0 * ops.log(u)) for u in uniform[:2]]
        normal = (
            radii[0] * ops.cos(TURN * uniform[2]),
            radii[0] * ops.sin(TURN * uniform[2]),
            radii[1] * ops.cos(TURN * uniform[3]),
        )
        return {"noise": seed}, normal


def turned(d: Numeric, q: Numeric, angle: Numeric) -> tuple[Numeric, Numeric]:
    """A vector of axes that are turned by this angle [rad], in the axes themselves."""
    c, s = ops.cos(angle), ops.sin(angle)
    return c * d - s * q, s * d + c * q
