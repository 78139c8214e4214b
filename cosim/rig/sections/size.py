"""The size of a rig, estimated before anything is compiled: a rig that would take minutes is refused."""

from __future__ import annotations

from cosim.core.errors import plural
from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.rig.reading.schema import KeyPath, Reading
from cosim.rig.sections.schedule import ScheduleSpec

MOST_BODIES = 10_000
MOST_INSTRUCTIONS = 500_000  # of a tick; compiling 10,000 takes about a second
PER_DOF = 200  # measured


def instructions(dofs: int, substeps: int, integrator: str) -> int:
    """The instructions of the machine code of a tick, estimated from measured ones."""
    if INTEGRATORS[integrator].implicit:  # it solves equations of all dofs, and substeps share this code
        return (PER_DOF + 65) * dofs + 70 * substeps + 5 * dofs**2 + dofs**3 // 3
    return PER_DOF * dofs + substeps * (70 + 65 * dofs)


def check_size(dofs: int, schedule: ScheduleSpec, reading: Reading) -> bool:
    """Whether a rig is small enough to be compiled; otherwise the error is recorded with the value to lower."""
    substeps, integrator = schedule.substeps or 1, schedule.integrator or "rk4"
    estimate = instructions(dofs, substeps, integrator)
    if estimate <= MOST_INSTRUCTIONS:
        return True
    at: KeyPath = ("mechanism",)
    fix = "use fewer bodies"
    if instructions(dofs, 1, "rk4") <= MOST_INSTRUCTIONS:
        at, fix = ("schedule", "integrator"), "use another integrator or fewer bodies"
        fixed, one = (instructions(dofs, n, integrator) for n in (0, 1))
        most = (MOST_INSTRUCTIONS - fixed) // (one - fixed)
        if most >= 1:
            at, fix = ("schedule", "substeps"), f"lower substeps to {most:,} or less, or use a smaller step"
    what = f"a tick of {dofs:,} {plural(dofs, 'dof')} has about {estimate:,} instructions"
    reading.fail(at, f"{what}, at most {MOST_INSTRUCTIONS:,} are compiled; {fix}")
    return False
