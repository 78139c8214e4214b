"""What modes of a mechanism share: indicators, whose upward zero crossings are events, and changes of modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cosim.core import ops
from cosim.core.types import Numeric, State

KEEPS_VELOCITY = -1.0  # coefficient of restitution of a dof that is not arrested after all
STANDSTILL = 1e-9  # speed [rad/s or m/s] below which a dof is at rest

ELAPSED = "elapsed"  # an input of tables of efforts

# of indicators: t, step [s]; position, velocity, acceleration, locking_effort, (nv,) each; signals by name. With
# brakes: slide, held (1: by a latch or a stop), static_effort (the largest of a sticking brake), ELAPSED [s] since the
# brake was applied, (nv,) each; of effects also trial_acceleration and trial_effort (nv,), see `brakes.Brakes.trial`
EventInputs = Mapping[str, Numeric]


class ModeChange(NamedTuple):
    """The effect of an event: the modes afterwards, and the coefficient of restitution of each dof that it arrests."""

    state: State
    rebound: dict[int, Numeric]


class EventIndicator(NamedTuple):
    """A function of the state whose upward zero crossing is an event, where it is enabled."""

    name: str
    value: Callable[[EventInputs], Numeric]
    enabled: Callable[[State, EventInputs], Numeric]
    effect: Callable[[State, EventInputs], ModeChange]
    # while this holds, it also fires at a value of 0 or above without a crossing
    fires_while: Callable[[EventInputs], Numeric] | None = None
    leaves: bool = False  # whether a body leaves what it touches


def with_modes(s: State, what: str, places: Sequence[int], values: Numeric) -> State:
    """The modes with these values, or one value, of `what` at places."""
    values = values if isinstance(values, list) else [values] * len(places)
    return s | {what: ops.set_at(s[what], places, values)}
