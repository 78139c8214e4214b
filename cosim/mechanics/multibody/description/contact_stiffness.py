"""The stiffness of contacts where none is given, and the largest one that differs from a rigid contact in a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from cosim.mechanics.multibody.description.inertia import moving_parts
from cosim.mechanics.multibody.mechanism import Mechanism

SCALE = 30.0  # kg, of a mechanism whose contacts have 1e7 N/m
USUAL = 1e7 / SCALE  # N/m per kg of all that moves
LARGEST_RATE = 1e9  # 1/s², stiffness of a contact per mass of its lighter body, where no stiffness is given
ROUNDING = 1e-9  # of a digit, such as the 3 of 0.3 / 0.1
LARGEST_TURN = 30.0  # rad: natural frequency of a body on its contact times the step, from which it is as if rigid


def body_masses(mechanism: Mechanism) -> Mapping[str, float]:
    """Link -> the mass of its rigid body [kg]: the link with all on fixed joints to it. The ground has inf."""
    bodies = moving_parts(mechanism.links, mechanism.joints)
    masses = dict.fromkeys(bodies.values(), 0.0)
    for link in mechanism.links:
        masses[bodies[link.name]] += link.mass
    masses[bodies[mechanism.root]] = math.inf
    return {link: masses[body] for link, body in bodies.items()}


def moving_mass(mechanism: Mechanism) -> float:
    """The mass of all links that are not fixed to the ground [kg]."""
    masses = body_masses(mechanism)
    return sum(link.mass for link in mechanism.links if math.isfinite(masses[link.name]))


def lighter_mass(links: Iterable[str], masses: Mapping[str, float]) -> float:
    """The mass of the lighter body of a contact of these links [kg]; inf if none of them has a mass. masses: see
    `body_masses`."""
    return min((mass for link in links if (mass := masses[link]) > 0.0), default=math.inf)


def usual_stiffness(moving: float, lighter: float) -> float:
    """The stiffness of a contact where none is given [N/m], one significant digit: 1e7 N/m for a mechanism of 30 kg, in
    proportion to its mass, and at most 1e9/s² times the mass of the lighter body.

    moving: of the mechanism, lighter: of the body [kg].
    """
    wanted = USUAL * (moving or SCALE)
    largest = LARGEST_RATE * lighter
    return _one_digit(wanted, round) if wanted <= largest else _one_digit(largest, math.floor)


def _one_digit(value: float, rounded: Callable[[float], int]) -> float:
    """rounded: how the digit is rounded."""
    power = 10.0 ** math.floor(math.log10(value))
    return float(f"{rounded(value / power + ROUNDING) * power:.0e}")


def largest_stiffness(lighter: float, step: float) -> float:
    """The stiffness from which a contact of a body of the mass `lighter` [kg] is as if rigid to a step [s], [N/m].

    With the natural frequency ω = √(k/m), ω times the step is then 30 rad, about five periods.
    """
    return lighter * (LARGEST_TURN / step) ** 2
