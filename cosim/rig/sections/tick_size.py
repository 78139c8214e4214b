"""The size of the ticks of a rig, estimated before anything is compiled: a rig that would take minutes is refused.

Figures are measured on chains, in lines of LLVM IR: 80,000 compile in 8 s, 290,000 in a minute. What is alike for many
joints is one loop over them; these joints count by the time in which their loop is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cosim.core.errors import plural
from cosim.mechanics.formulations import SEPARATE_BODIES
from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.mechanics.multibody.contact.gaps import points_of
from cosim.mechanics.multibody.equations import ROLLED_FROM
from cosim.mechanics.multibody.joints import kind_of
from cosim.rig.reading.schema import KeyPath, Reading
from cosim.rig.sections.mechanism import MechanismSpec
from cosim.rig.sections.schedule import ScheduleSpec

MOST_INSTRUCTIONS = 500_000  # of a tick
MOST_OF_IMPLICIT = 1_500_000  # of one with an implicit integrator, whose equations compile faster
FIXED_PER_SUBSTEP = 70
PER_DOF, PER_DOF_AND_SUBSTEP = 200, 65  # of straight-line code
LOOP_PER_DOF, LOOP_PER_DOF_AND_SUBSTEP = 28, 8
PER_DOF_AND_SWITCH = 25  # its impulse on each dof
PER_CUBED_DOFS, PER_SQUARED_DOFS = 12, 52  # of the equations of an implicit step; of one for the drives alone
# of a step with contacts, whose equations are sweeps, and of the matrix of its points
PER_SWEPT_DOF, PER_DOF_AND_POINT, PER_SQUARED_POINTS = 1050, 104, 240


@dataclass(frozen=True)
class TickSize:
    """What the size of a tick depends on. dofs: that move on their own; straight: why their equations are straight-line
    code, "" where they are a loop; coupled: dofs that an implicit step solves together, set by set, None for all;
    switches: joints with stops, and events; points: of contacts.
    """

    dofs: int
    straight: str = "it is a small one"
    coupled: Sequence[int] | None = None
    switches: int = 0
    points: int = 0

    def instructions(self, substeps: int, integrator: str) -> int:
        """The instructions of a tick, estimated from measured ones."""
        method = INTEGRATORS[integrator]
        loops = not (self.straight or self.switches or method.implicit)
        per_dof, per_both = (LOOP_PER_DOF, LOOP_PER_DOF_AND_SUBSTEP) if loops else (PER_DOF, PER_DOF_AND_SUBSTEP)
        events = PER_DOF_AND_SWITCH * self.dofs * self.switches
        if not method.implicit:
            return per_dof * self.dofs + substeps * (FIXED_PER_SUBSTEP + per_both * self.dofs) + events
        together = [self.dofs] if self.coupled is None else self.coupled
        # substeps share the code that solves the equations
        solved = sum(PER_SQUARED_DOFS * n**2 if method.multirate else PER_CUBED_DOFS * n**3 for n in together)
        if method.moreau:  # of bodies that are alike less
            of_points = self.points * (PER_DOF_AND_POINT * self.dofs + PER_SQUARED_POINTS * self.points)
            solved = min(solved, PER_SWEPT_DOF * self.dofs + of_points)
        return (per_dof + per_both) * self.dofs + FIXED_PER_SUBSTEP * substeps + solved + events


def size_of(mechanism: MechanismSpec, dofs: int) -> TickSize:
    """The size of a tick of a mechanism of so many dofs, without switches."""
    described = mechanism.description
    moving = [joint for joint in described.joints if joint.kind != "fixed"]
    kinds = [kind_of(joint) for joint in moving]
    reasons = {
        "joints have different numbers of dofs": len({(kind.nq, kind.nv) for kind in kinds}) > 1,
        "of mimic joints": any(joint.mimic is not None for joint in moving),
        "of moving bases": any(kind.timed for kind in kinds),
        "of loops and constraints": bool(described.loops or described.constraints),
        "of springs between bodies": bool(described.springs),
        "of force laws": bool(described.forces),
        "of elastic links": any(link.elastic is not None for link in described.links),
        "of recorded reactions": bool(described.reactions),
        "of its formulation": mechanism.formulation != SEPARATE_BODIES,
        "it is a small one": len(moving) < ROLLED_FROM,
    }
    straight = next((reason for reason, holds in reasons.items() if holds), "")
    joined = bool(described.loops or described.constraints or described.springs or described.forces)
    points = sum(points_of(*contact.shapes) for contact in described.contacts)
    return TickSize(dofs, straight, None if joined else _trees(mechanism), points=points)


def _trees(mechanism: MechanismSpec) -> list[int]:
    """The dofs of each tree on the ground."""
    described = mechanism.description
    above = {joint.child: joint for joint in described.joints}
    tree_of: dict[str, str] = {described.root: described.root}
    found: dict[str, int] = {}
    for joint in described.joints:
        path = [joint.child]
        while path[-1] not in tree_of and path[-1] in above:
            path.append(above[path[-1]].parent)
        # what a fixed joint holds to the ground belongs to it
        for link in reversed(path):
            if link not in tree_of and link in above:
                parent = tree_of.get(above[link].parent, described.root)
                new = parent == described.root and above[link].kind != "fixed"
                tree_of[link] = link if new else parent
        if joint.mimic is None:
            tree = tree_of.get(joint.child, described.root)
            found[tree] = found.get(tree, 0) + kind_of(joint).nv
    return [n for n in found.values() if n]


def check_size(size: TickSize, schedule: ScheduleSpec, reading: Reading) -> bool:
    """Whether a rig is small enough to be compiled; otherwise the error is recorded with the value to lower."""
    substeps, integrator = schedule.substeps or 1, schedule.integrator or "rk4"
    estimate = size.instructions(substeps, integrator)
    most = MOST_OF_IMPLICIT if INTEGRATORS[integrator].implicit else MOST_INSTRUCTIONS
    if estimate <= most:
        return True
    at, fix = _to_lower(size, integrator)
    what = f"a tick of {size.dofs:,} {plural(size.dofs, 'dof')} has about {estimate:,} instructions"
    reading.fail(at, f"{what}, at most {most:,} are compiled; {fix}")
    return False


def _to_lower(size: TickSize, integrator: str) -> tuple[KeyPath, str]:
    """(key, what to lower) for a tick with too many instructions."""
    without = replace(size, switches=0)
    if without.instructions(1, "rk4") > MOST_INSTRUCTIONS:
        most = _most_dofs(without)
        why = f"; bodies become no loop because {size.straight}" if size.straight else ""
        return ("mechanism",), f"use {most:,} dofs or fewer; bodies on fixed joints have none{why}"
    if size.instructions(1, "rk4") > MOST_INSTRUCTIONS:
        return (
            "joints",
        ), f"use fewer stops and events, their code grows with each dof; {size.switches:,} are too many"
    fixed, one = (size.instructions(n, integrator) for n in (0, 1))
    limit = MOST_OF_IMPLICIT if INTEGRATORS[integrator].implicit else MOST_INSTRUCTIONS
    most = (limit - fixed) // (one - fixed)
    if most >= 1:
        return ("schedule", "substeps"), f"lower substeps to {most:,} or less, or use a smaller step"
    if INTEGRATORS[integrator].moreau and size.points:
        return ("mechanism",), f"use fewer bodies or fewer contacts, which have {size.points} points"
    return ("schedule", "integrator"), "use another integrator or fewer bodies"


def _most_dofs(size: TickSize) -> int:
    """The most dofs with one substep of rk4."""
    none, one = (replace(size, dofs=n).instructions(1, "rk4") for n in (0, 1))
    return (MOST_INSTRUCTIONS - none) // (one - none)
