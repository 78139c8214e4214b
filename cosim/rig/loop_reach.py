"""References that closed loops cannot follow: positions of their driven joints at which they do not close."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from cosim.core.errors import listed, plural
from cosim.core.types import Array
from cosim.mechanics.multibody.configuration_space import ChosenDofs
from cosim.mechanics.multibody.loop_motions import closed_beside, coupled_loops
from cosim.rig.loop_drives import movable
from cosim.rig.references import ReferenceSamples, reference_samples
from cosim.rig.wiring.wired_rig import WiredRig

PLACES = 40  # of the references that are tried, from the start of the run on
HALVINGS = 12  # of the way between two places, until the loops do not close in between
TRIES = 4  # from where they close last: a long way may only be too far for one search


def loops_beyond_reach(rig: WiredRig) -> Iterator[str]:
    """A line for each set of coupled loops that does not close where references bring their joints.

    All driven joints of the loops are at their references, and the other ones move. Loops with more drives than
    independent motions, loops that time or an event moves or opens, and starts elsewhere than the references are left
    out: see `drives_against_each_other` and `_said_by_themselves` of references."""
    plant = rig.plant
    if not plant.model.constraint_rows or rig.spec.events or plant.prescribed_dofs or plant.real:
        return
    tracks = [
        (loop.index, reference_samples(rig, loop)) for loop in rig.tick_model.loops if loop.needs_reference("position")
    ]
    able = movable(rig)
    for loops in coupled_loops(plant.model, plant.start.q, able):
        driven = {
            int(k): (samples, i)
            for index, samples in tracks
            for i, k in enumerate(index)
            if k in loops.dofs and len(samples.t) > 1
        }
        if not driven or loops.independent_among(sorted(driven)) < len(driven):
            continue
        if (found := _first_beyond(rig, driven, sorted(set(loops.dofs.tolist()) - set(driven)))) is not None:
            t, reached, wanted = found
            units = plant.model.dof_units
            names = listed(
                [f"{rig.joints[k]!r} is {x:.4g} {units[k]}" for k, x in zip(sorted(driven), wanted, strict=True)]
            )
            one = len(loops.constraints) == 1
            where = f"{plural(len(loops.constraints), 'loop')} {listed([repr(name) for name in loops.constraints])}"
            least = listed([f"{x:.4g} {units[k]}" for k, x in zip(sorted(driven), reached, strict=True)])
            verb, until = ("does", "it closes") if one else ("do", "they close")
            what = f"{where} {verb} not close where the reference of {names}, at {t:.4g} s"
            yield f"{what}; on the way there {until} until {least}, give goals before that"


def _first_beyond(
    rig: WiredRig, driven: Mapping[int, tuple[ReferenceSamples, int]], others: list[int]
) -> tuple[float, Array, Array] | None:
    """(time [s], positions until which the loops close, positions of the references then), (n,) by driven dof."""
    model, q = rig.plant.model, rig.plant.start.q
    dofs = np.array(sorted(driven), dtype=int)
    space = ChosenDofs(model.equations, dofs)
    end = max(samples.t[-1] for samples, _ in driven.values())

    def at(t: float) -> Array:
        return np.array([np.interp(t, driven[k][0].t, driven[k][0].position[:, driven[k][1]]) for k in dofs.tolist()])

    def closed(q: Array, wanted: Array) -> Array | None:
        here = np.asarray(model.equations.chart(q), dtype=float)[dofs]
        return closed_beside(model, space.moved(q, wanted - here), others)

    def towards(q: Array, wanted: Array) -> tuple[Array, bool]:
        """(coordinates as near to the wanted positions as the loops close on the way, whether they close there)"""
        for _ in range(TRIES):
            if (there := closed(q, wanted)) is not None:
                return there, True
            start = np.asarray(model.equations.chart(q), dtype=float)[dofs]
            inside, outside, last = 0.0, 1.0, q
            for _ in range(HALVINGS):
                middle = 0.5 * (inside + outside)
                if (place := closed(q, start + middle * (wanted - start))) is not None:
                    inside, last = middle, place
                else:
                    outside = middle
            if inside == 0.0:
                break
            q = last
        return q, False

    for t in np.linspace(0.0, end, PLACES):
        wanted = at(float(t))
        q, there = towards(q, wanted)
        if not there:
            return float(t), np.asarray(model.equations.chart(q), dtype=float)[dofs], wanted
    return None
