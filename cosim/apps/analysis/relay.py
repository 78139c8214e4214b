"""The relay experiment: a joint oscillates where the phase of its plant is −180°, less with hysteresis.

A relay in the place of the controller commands ± d by the sign of the error (Åström and Hägglund, Automatic tuning of
simple regulators, Automatica 20(5), 1984). By the describing function of a relay with the hysteresis ε, the plant has
the response −π a / (4 d) · exp(j asin(ε / a)) at the frequency of a limit cycle of the amplitude a.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cosim.apps.analysis import relay_controller
from cosim.apps.analysis.between_ticks import crossing_after, highest
from cosim.apps.analysis.linearisation import LinearRig, linearise
from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.core.units import TURN
from cosim.rig.moving_motors import what_moves
from cosim.rig.reading.plugins import Plugin
from cosim.rig.rig import Rig
from cosim.rig.run.consent import GivenQuestion, asking
from cosim.rig.run.run import StoppedRun
from cosim.rig.sections.controllers import KEYS

AMPLITUDE_FRACTION = 0.1  # of the largest effort of the joint
SMALLEST_PERIOD = 8  # ticks
PERIODS, SPREAD = 4, 0.15  # periods that are looked at, and how far they may differ
LASTING, SHORTEST_RUN, LONGEST_RUN = 30, 0.5, 20.0  # periods of an experiment, and its duration [s]
DEFAULT_RUN = 5.0  # s, of one whose linear plant never has the phase −180°
HYSTERESIS_RESOLUTIONS = 2.0  # of the encoder: the default hysteresis
# of the swing by the linear plant: the hysteresis of a second try, where other joints that are held oscillate along and
# the periods wander
CALMING_HYSTERESIS = 0.2


@dataclass(frozen=True)
class RelayRequest:
    """The settings of a relay experiment; None stands for the default.

    amplitude: of the relay [SI], by default 10 % of the largest effort; hysteresis [rad or m]: by default two counts of
    the encoder, 0 without one, and a fifth of the expected swing where that gives no steady oscillation.
    """

    amplitude: float | None = None
    hysteresis: float | None = None


@dataclass(frozen=True)
class RelayPoint:
    """The point of a joint's frequency response at which a relay makes it oscillate.

    amplitude: of the relay, effort; hysteresis, swing: of the position, amplitudes [rad or m]; omega [rad/s]; linear:
    the plant of the linear rig there, position per effort.
    """

    joint: str
    amplitude: float
    hysteresis: float
    swing: float
    omega: float
    linear: complex

    @property
    def ultimate_gain(self) -> float:
        """1 / |P|, of a joint without hysteresis the gain of a proportional controller at the limit of stability."""
        return 4.0 * self.amplitude / (math.pi * self.swing)

    @property
    def plant(self) -> complex:
        """P, position per effort, by the describing function."""
        return -cmath.exp(1j * math.asin(min(1.0, self.hysteresis / self.swing))) / self.ultimate_gain

    def as_json(self) -> dict[str, Any]:
        """Frequencies in rad/s, the period in s, responses as real and imaginary parts."""
        both = {"plant": self.plant, "linear": self.linear}
        return (
            {key: value for key, value in asdict(self).items() if key not in ("joint", "linear")}
            | {"ultimate_gain": self.ultimate_gain, "period": TURN / self.omega}
            | {name: {"real": value.real, "imag": value.imag} for name, value in both.items()}
        )


def measure_relay(
    rig: Rig, model: Rig, joints: Sequence[str], request: RelayRequest, ask: GivenQuestion
) -> list[RelayPoint]:
    """An experiment for each of these joints. rig: with simulated or real motors; model: the same with simulated ones;
    ask: before each experiment with real motors.

    Raises InputError for a joint without controller or limit cycle, and where an experiment is stopped.
    """
    return [_experiment(rig, model, joint, request, ask) for joint in joints]


def _experiment(rig: Rig, model: Rig, joint: str, request: RelayRequest, ask: GivenQuestion) -> RelayPoint:
    dof = rig.joints.index(joint)
    loop = next((loop for loop in rig.tick_model.loops if dof in loop.index), None)
    if loop is None:
        raise InputError(f"joint '{joint}' has no controller in whose place a relay could be", "--measure")
    amplitude = _amplitude(rig, dof, request.amplitude)
    values = {"amplitude": np.where(loop.index == dof, amplitude, 0.0)}
    linear = linearise(with_relay(model, loop.name, values))
    critical = _critical(linear, dof)
    seconds = DEFAULT_RUN if critical is None else min(LONGEST_RUN, max(SHORTEST_RUN, LASTING * TURN / critical))
    tried = [_hysteresis(rig, joint, request.hysteresis)]
    if request.hysteresis is None and critical is not None:
        swing = 4.0 * amplitude / math.pi * float(np.abs(plant_response(linear, dof, critical)))
        tried.append(max(*tried, CALMING_HYSTERESIS * swing))
    failure = ""
    for hysteresis in tried:
        excited = with_relay(rig, loop.name, values | {"hysteresis": np.where(loop.index == dof, hysteresis, 0.0)})
        consent = None
        if rig.hardware:
            effort = f"a relay of ± {amplitude:.3g} {'N·m' if _is_rotational(rig, dof) else 'N'}"
            consent = asking(ask, [*what_moves(excited), f"{joint}: {effort} about its initial position"])
        try:
            run = excited.run(seconds, consent=consent, keep="all")
            swing, ticks = limit_cycle(run[f"{joint}/position"])
        except StoppedRun as stopped:
            what = f"the relay experiment of {joint} ended early: {stopped.run.fault}"
            raise InputError(f"{what}; give a smaller --amplitude", "--measure") from None
        except ValueError as error:
            failure = str(error)
            continue
        omega = TURN / (ticks * rig.tick_model.step)
        return RelayPoint(joint, amplitude, hysteresis, swing, omega, complex(plant_response(linear, dof, omega)))
    fix = "give another --amplitude or --hysteresis"
    raise InputError(f"joint '{joint}' {failure} under a relay; {fix}", "--measure")


def with_relay(rig: Rig, controller: str, values: Mapping[str, Array]) -> Rig:
    """The rig with a relay in the place of a controller, about its initial positions; values: parameters of the relay,
    (n,) of its joints. Raises InputError for a controller that cannot hold the other joints."""
    specs = list(rig.spec.controllers)
    k = next(k for k, spec in enumerate(specs) if spec.name == controller)
    n, given = len(specs[k].joints), rig.parameters
    held = {word: given.get(f"{controller}.{word}") for word in ("kp", "kd")}
    if n > 1 and None in held.values():
        what = f"controller '{controller}' has no kp and kd, with which its other joints could be held"
        raise InputError(f"{what}; use a controller that has", "relay")
    arrays = {"amplitude": np.zeros(n), "hysteresis": np.zeros(n), **values}
    arrays |= {word: np.broadcast_to(0.0 if value is None else value, n) for word, value in held.items()}
    lists = {word: array.tolist() for word, array in arrays.items()}
    plugin = Plugin(
        "relay", relay_controller, relay_controller.Params(**{word: tuple(row) for word, row in lists.items()})
    )
    specs[k] = replace(specs[k], plugin=plugin, trajectory=None, fallback=None)
    source = rig.spec.source
    sections = list(source.data["controllers"])
    sections[k] = {key: value for key, value in sections[k].items() if key in KEYS} | {"type": "relay", **lists}
    source = replace(source, data={**source.data, "controllers": sections})
    return Rig(replace(rig.spec, controllers=tuple(specs), source=source), False)


def plant_response(linear: LinearRig, dof: int, omega: float | Array) -> Array:
    """Position of a dof per effort requested of it, of a rig whose loop of this dof is open; (m,) for omega (m,)."""
    z = np.exp(1j * np.asarray(omega) * linear.step)[..., None, None]
    column = np.linalg.solve(z * np.eye(len(linear.A)) - linear.A, linear.B[:, [dof]].astype(complex))
    row = len(linear.dofs) + dof
    return (linear.C[[row]] @ column)[..., 0, 0] + linear.D[row, dof]


def limit_cycle(position: Array) -> tuple[float, float]:
    """(amplitude, period [ticks]) of the last periods of an oscillation (ticks,), read between the ticks. Raises
    ValueError without one."""
    last = position[len(position) // 2 :]
    swing = last - 0.5 * (last.max() + last.min())
    rises = np.flatnonzero((swing[:-1] < 0.0) & (swing[1:] >= 0.0))
    periods = np.diff(crossing_after(swing, rises))[-PERIODS:]
    sizes = [0.5 * (highest(last[a:b]) + highest(-last[a:b])) for a, b in pairwise(rises.tolist())]
    steady = len(periods) == PERIODS and _alike(periods.tolist(), 1.0) and _alike(sizes, 0.0)
    if not steady or periods.mean() < SMALLEST_PERIOD:
        raise ValueError("oscillates as fast as the ticks" if steady else "has no steady oscillation")
    return float(np.mean(sizes[-PERIODS:])), float(periods.mean())


def _alike(values: list[float], resolution: float) -> bool:
    return max(values) - min(values) <= max(resolution, SPREAD * max(values))


def _amplitude(rig: Rig, dof: int, given: float | None) -> float:
    """Of the relay. Raises InputError for one that the drive cannot give beside the effort that holds the joint."""
    joint, limit, model = rig.joints[dof], float(rig.limits.effort[dof]), rig.plant.model
    if given is None and not math.isfinite(limit):
        raise InputError(f"joint '{joint}' has no limit of its effort; give --amplitude", "--measure")
    amplitude = AMPLITUDE_FRACTION * limit if given is None else given
    q, rest = model.coordinates(rig.plant.position), np.zeros(model.nv)
    held = float(np.abs(model.nonlinear_effects(q, rest))[dof])
    if amplitude + held > limit:
        most = f"{limit - held:.4g}" if limit > held else "nothing"
        what = f"a relay of {amplitude:.4g} is beyond what the limit of the effort of '{joint}' leaves, {most}"
        raise InputError(f"{what}; give a smaller one", "--amplitude")
    return amplitude


def _hysteresis(rig: Rig, joint: str, given: float | None) -> float:
    """The first one that is tried."""
    if given is not None:
        return given
    encoder = rig.spec.joints[joint].encoder
    return 0.0 if encoder is None or not encoder.cpr else HYSTERESIS_RESOLUTIONS * TURN / encoder.cpr


def _critical(linear: LinearRig, dof: int) -> float | None:
    """The frequency [rad/s] at which the phase of the linear plant is −180°, None without one."""
    omega = np.geomspace(1e-4, 1.0, 400) * math.pi / linear.step
    phase = np.unwrap(np.angle(plant_response(linear, dof, omega)))
    below = np.flatnonzero(phase < -math.pi)
    return float(omega[below[0]]) if len(below) else None


def _is_rotational(rig: Rig, dof: int) -> bool:
    return rig.plant.model.dof_units[dof] == "rad"
