"""The experiment that measures a loop: its joint at rest, with a feedforward effort that excites it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cosim.apps.analysis.frequency import poles
from cosim.apps.analysis.linearisation import LinearRig
from cosim.core.errors import InputError
from cosim.core.units import TURN
from cosim.rig.rig import Rig

Kind = Literal["multisine", "chirp"]
AMPLITUDE = 0.01  # of the largest effort of the joint
HIGHEST = 1.0 / 3.0  # of the rate
SLOWER = 0.2  # times the slowest pole
LONGEST, SHORTEST = 20.0, 0.2  # s of a period
PERIODS = 5
SINES = 60
FADED = 0.1  # of a chirp, at each end
HELD = {"type": "sine", "amplitude": 0, "frequency": 0}
REST = 0.5  # of a chirp, before and after it


@dataclass(frozen=True)
class Excitation:
    """amplitude: of the effort [SI]; period: of a multisine, and the duration of a chirp [s]; f0, f1 [Hz]."""

    kind: Kind
    joint: str
    amplitude: float
    period: float
    f0: float
    f1: float

    def trajectory(self, joints: tuple[str, ...]) -> dict[str, Any]:
        """Of a controller of these joints: others than the excited one are held."""
        amplitudes = [self.amplitude if name == self.joint else 0.0 for name in joints]
        common = {"type": self.kind, "of": "effort", "amplitude": amplitudes, "f0": self.f0, "f1": self.f1}
        if self.kind == "multisine":
            return common | {"period": self.period, "periods": PERIODS, "count": SINES}
        return common | {"duration": self.period, "ramp": FADED * self.period, "delay": self.settled}

    @property
    def settled(self) -> float:
        """When the rig is in the state about which it is measured [s]."""
        return self.period if self.kind == "multisine" else REST * self.period

    @property
    def duration(self) -> float:
        return self.period * (PERIODS if self.kind == "multisine" else 1.0 + 2.0 * REST)

    def overlay(self, rig: Rig) -> Mapping[str, object]:
        """The values that make a rig this experiment: nothing else moves, prescribed joints neither."""
        values: dict[str, object] = {
            f"controllers.{controller.name}.trajectory": self.trajectory(controller.joints)
            for controller in rig.spec.controllers
        }
        held = {name: HELD for name, joint in rig.spec.joints.items() if joint.prescribed is not None}
        values |= {f"joints.{name}.prescribed": still for name, still in held.items()}
        return values | {"schedule.duration": f"{self.duration!r} s"}


def excitation_of(
    rig: Rig,
    linear: LinearRig,
    joint: str,
    kind: Kind = "multisine",
    amplitude: float | None = None,
    lowest: float | None = None,
) -> Excitation:
    """To a third of the rate. amplitude: of the effort, by default 1 % of the largest one; lowest: frequency [Hz], by
    default below the slowest pole.

    Raises InputError for a joint that no controller drives, and for one without a limit of its effort or an amplitude.
    """
    dof = linear.dofs.index(joint)
    loop = next((loop for loop in rig.tick_model.loops if dof in loop.index), None)
    if loop is None:
        raise InputError(f"joint '{joint}' has no controller whose loop could be measured", "--measure")
    if amplitude is None:
        amplitude = AMPLITUDE * float(rig.limits.effort[dof])
        if not math.isfinite(amplitude):
            raise InputError(f"joint '{joint}' has no limit of its effort; give --amplitude", "--measure")
    highest = HIGHEST / linear.step
    period = min(LONGEST, max(SHORTEST, 1.0 / (_below_poles(linear, highest) if lowest is None else lowest)))
    period = math.ceil(period / linear.step - 1e-9) * linear.step  # whole ticks: bins of the discrete transform
    return Excitation(kind, joint, amplitude, period, 1.0 / period, highest)


def _below_poles(linear: LinearRig, highest: float) -> float:
    """A frequency below the slowest pole's, all in Hz."""
    speeds = np.abs(poles(linear))
    return SLOWER * float(np.min(speeds[speeds > 1e-9 / linear.step], initial=TURN * highest)) / TURN
