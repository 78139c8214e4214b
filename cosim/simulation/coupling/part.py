"""The contract of a part: a subsystem that is integrated apart from the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from cosim.core.types import Array, Signals


class StartValue(NamedTuple):
    """What a part is given for a variable of its own before it starts. value: in SI, nested lists of an array; a text,
    or true or false; unit: in SI; least, greatest: inclusive bounds in SI; about: its meaning."""

    value: Any
    unit: str
    least: float
    greatest: float
    about: str


class Part(Protocol):
    """A subsystem with an integrator of its own; it meets the others only at the ends of its steps.

    Within a step its inputs are polynomials of the time since the beginning of the step, as coefficients (k + 1, ...):
    the value, then the derivatives of order 1 to k, each divided by the factorial of its order. Times are in s.
    """

    inputs: Signals
    outputs: Signals
    # (input, output): the output depends on the input at the same time
    feedthrough: frozenset[tuple[str, str]]
    order: int  # highest order k of the inputs that it follows
    repeats: bool  # whether `save` and `restore` work, so that a step can be repeated
    variable: bool  # whether its steps may have any length

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs at the time of the start. May be called again before the first step, with the inputs that the
        outputs of others give. Raises InputError for a part that cannot start."""
        ...

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """From t to t + h; the outputs at t + h. Raises RunError for a part that fails, diverges or hangs."""
        ...

    def save(self) -> object:
        """What `restore` needs to return to this time."""
        ...

    def restore(self, saved: object) -> None: ...

    def close(self) -> None:
        """Release what it holds; idempotent, never raises."""
        ...


@runtime_checkable
class StepsAside(Protocol):
    """A part that computes elsewhere, while other parts step."""

    def begin_step(self, t: float, h: float, inputs: Mapping[str, Array]) -> None:
        """Start a step; the call of `step` with the same arguments that follows waits for its end."""
        ...
