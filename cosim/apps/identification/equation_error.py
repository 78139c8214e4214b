"""The equation error of a rig: what a recorded motion requires of each joint, less what drives it.

    e = (ID(q, v, q̈) − Jᵀ f + friction − effort of the drive) / gain of the drive

f: measured forces of contacts. It is in the unit of the recorded signal, which has the noise: a drive of another gain
explains nothing by itself. It is a function of numbers of the rig. Its derivatives are exact, and both are machine code
for all samples together.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cosim.apps.identification.blocks import GAIN, OFFSET
from cosim.apps.identification.recorded_contacts import contacts_of
from cosim.apps.identification.recorded_motion import MotionSamples
from cosim.core import ops
from cosim.core.compile import ArrayPort, BatchFunction, Interpreted, compile_for_batches
from cosim.core.compile.jacobian import Jacobian
from cosim.core.errors import InputError
from cosim.core.types import Array, Numeric
from cosim.mechanics.bondgraph.components.dc_motor import gear_friction
from cosim.mechanics.multibody.contact_dynamics import measured_efforts
from cosim.rig.parameter_table import table_of
from cosim.rig.parametrised_rig import plant_with
from cosim.rig.rig import Rig

CURRENT, COMMAND, EFFORT = "current", "command_effort", "effort"


def sources_of(rig: Rig) -> tuple[str, ...]:
    """Signals of what drives the joints, the best one first."""
    return (CURRENT, COMMAND) if any(map(_has_gear, _drives(rig).values())) else (EFFORT, COMMAND)


def has_equation_error(rig: Rig, fixed: Collection[str] = ()) -> bool:
    try:
        check_identifiable_rig(rig, fixed=fixed)
    except InputError:
        return False
    return True


def check_identifiable_rig(rig: Rig, otherwise: str = "use --method output-error", fixed: Collection[str] = ()) -> None:
    """Raises InputError for a rig whose equation error is not known; otherwise: the fix; fixed: joints that do not
    move."""

    def refuse(what: str) -> InputError:
        return InputError(f"{what}; {otherwise}", str(rig.spec.path))

    equations = rig.plant.model.equations
    if equations.constraints.elastic:
        raise refuse("elastic links bend, and how far is not recorded")
    if not equations.is_plain_tree or rig.plant.model.nq != rig.plant.model.nv:
        raise refuse("only open trees of joints with one coordinate each have an equation error")
    if rig.plant.prescribed:
        raise refuse(f"joint '{next(iter(rig.plant.prescribed))}' is prescribed and has no drive")
    drives = _drives(rig)
    for name in (name for name in rig.joints if name not in fixed):
        if name not in drives and name in rig.plant.actuated:
            raise refuse(f"the drive of '{name}' moves several joints, and has no equation error")
        if name not in drives:
            raise refuse(f"joint '{name}' has no drive, so its effort is not recorded")
        params = drives[name]
        if not (_has_gear(params) and not params.elastic) and not hasattr(params, "max_effort"):
            kind = rig.spec.joints[name].actuator
            what = f"the effort of the drive of '{name}' ({kind.name if kind else '?'})"
            raise refuse(f"{what} does not follow from one recorded signal")


def _drives(rig: Rig) -> dict[str, Any]:
    return {name: joint.actuator.params for name, joint in rig.spec.joints.items() if joint.actuator is not None}


def _has_gear(params: Any) -> bool:
    return hasattr(params, "per_ampere") and hasattr(params, "coulomb")


@dataclass(frozen=True)
class EquationError:
    """Of the numbers `names` of a rig, and of gains and offsets of its signals, see `blocks.GAIN`; source: the signal
    that drives the joints; fixed: joints that do not move. n joints do."""

    rig: Rig
    names: tuple[str, ...]
    source: str
    fixed: tuple[str, ...] = ()

    @cached_property
    def _moving(self) -> list[int]:
        return [k for k, name in enumerate(self.rig.joints) if name not in self.fixed]

    def _of_all(self, moving: Numeric, fixed: Numeric) -> Numeric:
        """(nv,) of those of joints that move (n,) and of those that do not."""
        nv = len(self.rig.joints)
        still = [k for k in range(nv) if k not in self._moving]
        return ops.set_at(ops.set_at(np.zeros(nv), self._moving, moving), still, fixed) if still else moving

    @property
    def wrenches(self) -> int:
        """Numbers of the measured wrenches of all contacts, see `RecordedMotion`."""
        return 6 * len(contacts_of(self.rig))

    def of_sample(
        self,
        values: Numeric,
        q: Numeric,
        v: Numeric,
        a: Numeric,
        drive: Numeric,
        fixed: Numeric,
        wrenches: Numeric,
    ) -> Numeric:
        """e (n,) of one sample; values of the numbers; fixed: positions of the joints that do not move; wrenches: of
        the contacts."""
        count, still = self._count_of_rig, np.zeros(len(self.fixed))
        q, v, a = self._of_all(q, fixed), self._of_all(v, still), self._of_all(a, still)
        drive = self._of_all(drive, still)
        plant, params = plant_with(self.rig, self._of_rig, values[:count])
        corrections = {name: values[count + k] for k, name in enumerate(self._of_signals)}
        equations, given = plant.model.equations, _drives(self.rig)
        gains, efforts = [], []
        for k, name in enumerate(self.rig.joints):
            if name in self.fixed:
                gains, efforts = [*gains, 1.0], [*efforts, 0.0]
                continue
            gains.append(self._gain(params[name], given[name]) * corrections.get(GAIN + name, 1.0))
            motor = gains[k] * (drive[k] - corrections.get(OFFSET + name, 0.0))
            efforts.append(motor - self._friction(params[name], motor, v[k]))
        laws = equations.friction_laws
        pushed = measured_efforts(equations, q, wrenches.reshape(-1, 6)) if self.wrenches else 0.0
        carried = np.zeros(len(efforts))  # as in the plant, without accelerations
        if any(law.of_external for law in laws.values()):
            carried = pushed - equations.inverse_dynamics(q, v, np.zeros(len(efforts)))
        dry = {k: law.sliding_effort(v[k], law.load(efforts[k], carried[k])) for k, law in laws.items()}
        required = equations.inverse_dynamics(q, v, a) - pushed + equations.friction_effort(v, dry)
        return ops.array([(required[k] - efforts[k]) / gains[k] for k in self._moving])

    @property
    def _of_rig(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if not name.startswith((GAIN, OFFSET)))

    @property
    def _of_signals(self) -> tuple[str, ...]:
        """The last ones of `names`."""
        return self.names[len(self._of_rig) :]

    def _gain(self, params: Any, given: Any) -> Numeric:
        """Effort of the motor at the joint per unit of the signal; given: the parameters that the drive itself has,
        which turn a requested effort into a current."""
        if not _has_gear(params) or self.source == EFFORT:
            return 1.0
        return params.per_ampere if self.source == CURRENT else params.per_ampere / given.per_ampere

    def _friction(self, params: Any, motor: Numeric, speed: Numeric) -> Numeric:
        if not _has_gear(params) or self.source == EFFORT:
            return 0.0
        return gear_friction(motor, speed, params.viscous, params.coulomb, params.efficiency)

    @cached_property
    def _compiled(self) -> BatchFunction | Interpreted:
        nv, n = len(self._moving), self.count
        shapes = [(n + nv,), (nv,), (nv,), (nv,), (len(self.fixed),), (self.wrenches,)]

        def signed(z: Numeric, q: Numeric, v: Numeric, a: Numeric, *known: Numeric) -> Numeric:
            return self.of_sample(z[:n], q, v, a, z[n:], *known)

        by_all = Jacobian(signed, shapes, "equation_error")

        def error(*sample: Numeric) -> Numeric:
            """Per change of the signal, which a friction that grows with the effort of the drive makes less than 1:
            else a friction as large as the drive itself would explain everything."""
            slope, errors = by_all(*sample), signed(*sample)
            return ops.array([-errors[k] / slope[k, n + k] for k in range(nv)])

        grows = any(law.of_drive for law in self.rig.plant.model.equations.friction_laws.values())
        found = error if grows else signed
        jacobian = Jacobian(found, shapes, "equation_error") if grows else by_all

        def both(
            values: Numeric, q: Numeric, v: Numeric, a: Numeric, drive: Numeric, *known: Numeric
        ) -> tuple[Numeric, ...]:
            z = ops.concatenate([values, drive])
            slope = jacobian(z, q, v, a, *known)
            by_drive = ops.array([slope[k, n + k] for k in range(nv)])
            return found(z, q, v, a, *known), slope[:, :n], by_drive

        sizes = {"values": n, **dict.fromkeys(("position", "velocity", "acceleration", "drive"), nv)}
        known = {"fixed": len(self.fixed), "wrenches": self.wrenches}
        ports = [ArrayPort(name, (size,)) for name, size in (sizes | known).items()]
        return compile_for_batches(both, ports, "equation_error")

    @cached_property
    def _count_of_rig(self) -> int:
        known = table_of(self.rig).per_run
        return sum(known[name].values.size for name in self._of_rig)

    @property
    def count(self) -> int:
        """Of all values."""
        return self._count_of_rig + len(self._of_signals)

    def evaluate(self, values: Array, samples: MotionSamples, delay: float = 0.0) -> tuple[Array, Array, Array]:
        """(e (k, nv), ∂e/∂values (k, nv, n), ∂e/∂drive (k, nv)); the drive acts `delay` [s] after it was recorded."""
        drive = samples.drive - (delay - samples.delay) * samples.drive_rate
        motion = samples.position, samples.velocity, samples.acceleration
        found = self._compiled(values, *motion, drive, samples.fixed, samples.wrenches)
        error, slope, by_drive = (np.asarray(part) for part in found)
        return error, slope, by_drive
