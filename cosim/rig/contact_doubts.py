"""Warnings of contacts: shapes that begin inside each other, and steps that are too long for a rebound on springs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from cosim.core.units import format_seconds
from cosim.mechanics.multibody.contact.law_rows import damping_ratio
from cosim.mechanics.multibody.contact_set import BodyContact
from cosim.mechanics.multibody.description.contact_stiffness import moving_mass
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.plant.plant import Plant

DEEP, GRAVITY = 1e-3, 9.81  # m, m/s²
TIMES_WEIGHT = 10.0  # of all that moves: force of a spring at the start that is no load of a mechanism at rest
COARSE = 0.1  # by which a rebound may be off, in restitution
PHASES = 8  # of the touch within a step, over which a rebound is averaged
FINE_TURN, MOST_STEPS = 0.05, 100_000  # rad per step, at which a rebound is within some percent; of a touch


def doubts_of_contacts(rig: WiredRig) -> Iterator[str]:
    """A sentence for each."""
    plant = rig.plant
    if not plant.contacts or plant.exact:
        return
    yield from _deep_starts(plant, moving_mass(rig.spec.mechanism.description))
    if plant.moreau and plant.control is None:
        yield from _coarse_rebounds(plant, 1e-9 * rig.spec.schedule.step_ns / rig.spec.schedule.substeps)


def _deep_starts(plant: Plant, mass: float) -> Iterator[str]:
    start = plant.start
    points, _ = plant.contacts.points_and_rates(plant.model.equations, 0.0, start.q, np.zeros(plant.model.nv))
    for contact, own in plant.contacts.contacts.by_contact:
        depth = max(-float(points[j].gap) for j in own)
        k = contact.law.stiffness
        loaded = k is not None and float(k) * depth > TIMES_WEIGHT * GRAVITY * mass
        if depth > DEEP or loaded:
            force = "" if k is None else f", with {float(k) * depth:.3g} N at a point"
            fix = "start its links apart by the positions of joints under 'initial'"
            yield f"contact '{contact.name}' begins {1e3 * depth:.3g} mm inside{force}: it throws them apart; {fix}"


def _coarse_rebounds(plant: Plant, h: float) -> Iterator[str]:
    """Of contacts whose `restitution` the steps cannot give."""
    sprung = [contact for contact in plant.contacts.contacts.members if _rebounds(contact)]
    if not sprung:
        return
    mobility = np.diag(plant.contact_mobility)
    for contact, own in plant.contacts.contacts.by_contact:
        moved = max(float(plant.contacts.contacts.normals(mobility)[j]) for j in own)
        if contact not in sprung or moved <= 0.0:
            continue
        wanted, turn = float(contact.law.restitution), h * math.sqrt(float(contact.law.stiffness or 0.0) * moved)
        found = rebound_in_steps(wanted, turn)
        if abs(found - wanted) > COARSE:
            finer = format_seconds(_two_digits(h * FINE_TURN / turn))
            yield (
                f"contact '{contact.name}': a step of {format_seconds(h)} rebounds with about {found:.2g} in place of"
                f" restitution {wanted:g}, because its spring turns in {2.0 * math.pi / turn:.2g} steps; take"
                f" 'stiffness: rigid', schedule.substeps: auto, or steps of {finer}"
            )


def _rebounds(contact: BodyContact) -> bool:
    return contact.law.stiffness is not None and float(contact.law.restitution) > COARSE and not contact.virtual


def _two_digits(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / unit) * unit


def rebound_in_steps(restitution: float, turn: float) -> float:
    """Velocity after a touch over the one before, of a mass on the law of `law_rows` in steps of `turn` = ω h: the mean
    over the part of the step at which the touch begins."""
    return float(np.mean([_rebound(float(damping_ratio(restitution)), turn, k / PHASES) for k in range(PHASES)]))


def _rebound(ratio: float, h: float, phase: float) -> float:
    """Mass, stiffness and speed are 1."""
    gap, speed = phase * h, -1.0
    for _ in range(MOST_STEPS):
        middle = gap + 0.5 * h * speed
        a = 0.5 * h + (2.0 * ratio if middle < 0.0 else 0.0)
        force = max(0.0, -(a * speed + middle) / (1.0 + a * h))
        speed += h * force
        gap = middle + 0.5 * h * speed
        if speed > 0.0 and gap > 0.0:
            break
    return speed
