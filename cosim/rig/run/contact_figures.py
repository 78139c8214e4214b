"""What became of the contacts in a run: how hard they pressed, how far they slid, what they lost, and how their solver
fared."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypedDict

from cosim.mechanics.multibody.contact.contact_solver import SolverBounds
from cosim.output.signal_statistics import SignalFigures
from cosim.rig.run.run_metadata import RunMetadata

FORCE, GAP = "normal_force", "gap"
OF_A_CONTACT = (FORCE, GAP, "impulse", "slid", "touches", "slips", "lost")
SOLVER = tuple(f"contacts/{what}" for what in ("passes", "residual", "total_passes", "unconverged"))
OFTEN = 0.001  # of the steps, that are not solved, which are warned of


class ContactSummary(TypedDict):
    """Of a contact: its normal force [N] on average over the run, at most, and when it was first there [s], None in
    runs that did not follow it; how deep the shapes were in each other at most, how far they slid [m]; how often they
    touched and began to slide, and the energy lost [J]."""

    force_mean: float
    force_peak: float
    t_s: float | None
    depth_max: float
    slid: float
    touches: int
    slips: int
    energy_lost_J: float


class ContactSolverSummary(TypedDict):
    """Passes of the solver per step on average, in a step at most; its largest residual [m/s]; the steps whose residual
    was above `SolverBounds.unconverged`, and their part of all steps."""

    passes_mean: float
    passes_max: int
    residual_max: float
    unconverged: int
    unconverged_part: float


def contact_names(signals: Container[str], units: Mapping[str, str]) -> list[str]:
    """The contacts whose signals were kept."""
    names = [name.removesuffix(last) for name in units if name.endswith(last := f"/{FORCE}")]
    return [name for name in names if all(f"{name}/{what}" in signals for what in OF_A_CONTACT)]


def followed_of_contacts(rig: RunMetadata) -> list[str]:
    """The signals of these figures."""
    return [*(f"{name}/{what}" for name in contact_names(rig.units, rig.units) for what in OF_A_CONTACT), *SOLVER]


def timed_of_contacts(rig: RunMetadata) -> list[str]:
    """Those whose peaks have a time."""
    return [f"{name}/{FORCE}" for name in contact_names(rig.units, rig.units)]


def contacts(rig: RunMetadata, signals: Mapping[str, SignalFigures], duration: float) -> dict[str, ContactSummary]:
    """Contact -> its figures; duration: of the run [s]."""
    found: dict[str, ContactSummary] = {}
    for name in contact_names(signals, rig.units):
        force, gap, impulse, slid, touches, slips, lost = (signals[f"{name}/{what}"] for what in OF_A_CONTACT)
        at = force.peak_tick
        found[name] = {
            "force_mean": impulse.last / duration if duration > 0.0 else 0.0,
            "force_peak": force.max,
            "t_s": None if at is None or not touches.last else at * rig.step_ns * 1e-9,
            "depth_max": max(-gap.min, 0.0),
            "slid": slid.last,
            "touches": _count(touches.last),
            "slips": _count(slips.last),
            "energy_lost_J": lost.last,
        }
    return found


def contact_solver(rig: RunMetadata, signals: Mapping[str, SignalFigures], ticks: int) -> ContactSolverSummary | None:
    """None in a rig without contacts; ticks: of the run."""
    if not all(name in signals for name in SOLVER) or not isinstance(rig.substeps, int):
        return None
    passes, residual, total, unconverged = (signals[name] for name in SOLVER)
    steps = max(ticks * rig.substeps, 1)
    return {
        "passes_mean": total.last / steps,
        "passes_max": _count(passes.max),
        "residual_max": residual.max,
        "unconverged": _count(unconverged.last),
        "unconverged_part": unconverged.last / steps,
    }


def contact_warnings(solver: ContactSolverSummary | None, bounds: SolverBounds) -> list[str]:
    """Where the law of contact does not hold in too many steps."""
    if solver is None or not solver["unconverged_part"] > OFTEN:
        return []
    part = f"{solver['unconverged_part']:.2%} of the steps"
    what = f"the contacts are not solved to {bounds.unconverged:g} m/s in {part}, the largest residual is"
    fix = "give contacts a stiffness in place of 'rigid', or try a smaller schedule.step"
    return [f"{what} {solver['residual_max']:.2g} m/s; {fix}"]


def _count(value: float) -> int:
    """Of a run that diverged, 0 where it is not known."""
    return int(value) if abs(value) < float("inf") else 0
