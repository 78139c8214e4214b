"""A controller in its place: the joints it commands, when, by what reference, and what takes over when it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from cosim import ops
from cosim.control.bumpless_start import BumplessStart
from cosim.control.guard import is_finite
from cosim.control.tunables import Tunables
from cosim.errors import describe_exception, did_you_mean
from cosim.layout import Layout
from cosim.ops import is_symbolic
from cosim.types import COMMAND, FEEDBACK, State


@dataclass
class ControlLoop:
    """A controller of the joints at `index`, called every `ticks` ticks from tick `phase` on.

    fallback: a block that takes over for good when `block` raises, or commands what is not finite; it holds the
    position measured then.
    """

    name: str
    block: Any
    index: np.ndarray  # (n,) of its joints in the model's order
    ticks: int
    trajectory: Any
    phase: int = 0
    priority: int = 0
    deadline_ns: int | None = None
    fallback: Any = None

    own: slice = field(init=False, default_factory=lambda: slice(0))  # its parameters among those of all loops
    failure: str = field(init=False, default="")  # why the fallback took over, where an exception told
    compiled_fallback: Callable[..., Any] | None = field(init=False, default=None)  # for Python controllers

    def __post_init__(self) -> None:
        self.layout = Layout(self.initial())
        self.tunables = Tunables(self.block.params)

    def initial(self) -> State:
        """The state of the controller, and what the fallback needs."""
        state = {"block": self.block.initial()}
        if self.fallback is not None:
            state |= {"fallback": self.fallback.initial(), "held": np.zeros(len(self.index))}
        return state

    @property
    def fallback_active(self) -> np.ndarray:
        """(1,) 0 until the fallback has taken over, empty without one."""
        return np.zeros(0 if self.fallback is None else 1)

    def looks_at(self, what: str) -> bool:
        """Whether the controller follows a reference position (then it has a velocity and acceleration too), or this
        part of a reference."""
        return "reference_position" in self.block.inputs or f"reference_{what}" in self.block.inputs

    def update(
        self, t: Any, p: Any, x: Any, fallback_active: Any, q: Any, v: Any, effort: Any, a: Any, arming: Any
    ) -> tuple[Any, ...]:
        """(next state, fallback_active, then the fields of COMMAND): one call of the controller on flat arrays.

        p: its tunable parameters, x: its state; q, v, effort: (nv,) as measured; a: (nv,) accelerations that
        are known beforehand, those of prescribed joints; arming: an Arming as one array, of nv joints.
        """
        state = self.layout.unpack(x)
        begun = BumplessStart.of(arming, len(q)).at(self.index)
        known, reference = self._known(q, v, effort, a), begun.reference(self.trajectory, t)
        run = partial(self._run, self.block, t, self.tunables.apply(p), state["block"], known, reference)
        if self.fallback is None:
            state["block"], y = run()
            return self.layout.pack(state), fallback_active, *y
        return self._guarded(run, state, fallback_active, (t, q, v, effort, a))

    def run_fallback(self, t: Any, x: Any, q: Any, v: Any, effort: Any, a: Any, held: Any) -> tuple[Any, ...]:
        """(next state of the fallback, then the fields of COMMAND): one call of the fallback on flat arrays, which
        holds the position `held` (n,)."""
        at_rest = {what: np.zeros(len(self.index)) for what in ("velocity", "acceleration", "effort")}
        still, layout = {"position": held, **at_rest}, Layout(self.fallback.initial())
        known = self._known(q, v, effort, a)
        x, y = self._run(self.fallback, t, self.fallback.params, layout.unpack(x), known, still)
        return layout.pack(x), *y

    def _known(self, q: Any, v: Any, effort: Any, a: Any) -> dict[str, Any]:
        """The inputs that blocks may have, but for references."""
        measured = dict(zip(FEEDBACK, (q, v, effort), strict=True))
        known = {f"all_{name}": values for name, values in measured.items()} | {"all_acceleration": a}
        return known | {name: values[self.index] for name, values in measured.items()}

    def _run(
        self, block: Any, t: Any, p: Any, x: State, known: dict[str, Any], reference: dict[str, Any]
    ) -> tuple[State, list[Any]]:
        """(next state, the fields of COMMAND) of one of the two blocks."""
        u = known | {f"reference_{name}": value for name, value in reference.items()}
        unknown = [name for name in block.inputs if name not in u]
        if unknown:
            raise ValueError(f"there is no input '{unknown[0]}'{did_you_mean(unknown[0], u)}")
        x, y = block.update(t, p, x, {name: u[name] for name in block.inputs})
        return x, [self._output(name, y) for name in COMMAND]

    def _output(self, name: str, y: Any) -> Any:
        """One output of the block, checked: the block may be the user's own."""
        if name not in y:
            raise ValueError(f"the output '{name}' is missing")
        value = ops.array(y[name])
        if value.shape != self.index.shape:
            raise ValueError(f"the output '{name}' has shape {value.shape}; it must be {self.index.shape}")
        if value.dtype.kind not in "biufO":
            raise ValueError(f"the output '{name}' must be numbers")
        return value

    def _guarded(
        self, run: Callable[[], Any], state: State, fallback_active: Any, seen: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The same with a fallback: what it commands is heard from when the other has failed. In Python, what has
        failed is not called again, and the fallback not before.

        seen: t, q, v, effort, a.
        """
        n, tracing = len(self.index), any(map(is_symbolic, seen))
        x, y = state["block"], [np.full(n, np.nan)] * len(COMMAND)
        try:
            if tracing or not fallback_active[0]:
                x, y = run()
        except (Exception, SystemExit) as error:  # a controller may be the user's own: anything can happen in it
            if tracing:
                raise
            self.failure = describe_exception(error)
        sound = 1.0
        for values in y:
            for value in values:
                sound = ops.where(is_finite(value), sound, 0.0)
        before = fallback_active[0] > 0.0
        after = ops.logical_or(before, sound < 0.5)
        held = ops.where(before, state["held"], seen[1][self.index])
        layout = Layout(state["fallback"])
        rest, spare = layout.pack(state["fallback"]), y
        if tracing or after:
            fallback: Callable[..., Any] = self.compiled_fallback or self.run_fallback
            rest, *spare = fallback(seen[0], rest, *seen[1:], held)
        going = self.layout.pack({"block": x, "fallback": state["fallback"], "held": held})
        taken = self.layout.pack({"block": state["block"], "fallback": layout.unpack(rest), "held": held})
        heard = [ops.where(after, b, a) for a, b in zip(y, spare, strict=True)]
        return ops.where(after, taken, going), ops.array([ops.where(after, 1.0, 0.0)]), *heard
