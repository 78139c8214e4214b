"""The derivative of the plant's tick as a product: at the start of each of its steps the samples of the drives, then
the motion.

A motion of a given number of steps has an exact derivative. One whose number depends on the state, and one with events,
is linearised in its equations in the present modes: it is the exponential of these. With contacts it is one of their
steps, each of whose points stays as it is: open, sticking or sliding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.compile.reverse_jacobian import ReverseJacobian
from cosim.core.errors import CompileError
from cosim.core.types import Array, Numeric
from cosim.simulation.plant.sampling import due
from cosim.simulation.tick.tick_model import TickModel


class PlantStep(NamedTuple):
    """dofs: whose drives are sampled at its start, samples: ∂(state after them)/∂(t, x, request, setpoints), None
    without any; motion: ∂(state at its end)/∂(x, request)."""

    dofs: tuple[str, ...]
    samples: Array | None
    motion: Array


class PlantSteps:
    """The derivative of `TickModel.advance`. exact: whether it is one of the steps themselves."""

    def __init__(self, tick_model: TickModel) -> None:
        self.tick_model, self.integration = tick_model, tick_model.integration
        self.nx, self.nv = tick_model.plant.layout.size, tick_model.nv
        self._samples: dict[tuple[str, ...], Jacobian] = {}

    @property
    def exact(self) -> bool:
        return isinstance(self._motion, Jacobian | ReverseJacobian)

    @cached_property
    def _motion(self) -> Callable[[Array, Numeric], Array]:
        plant = self.tick_model.plant
        derivative = ReverseJacobian if plant.contacts else Jacobian
        try:
            with unquantised():
                return derivative(self._stepped, [(self.nx + self.nv,), ()], "slope_step")
        except CompileError:
            return self._with_contacts if plant.contacts else self._exponential

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the arguments of `TickModel.advance`."""
        return [(), (self.nx,), *([(self.nv,)] * (self.tick_model.held // self.nv))]

    def __call__(self, z: Array) -> Array:
        """∂(state after the tick)/∂(its arguments), both as vectors (nx,) and (n,)."""
        found, held = np.eye(self.nx, len(z), 1), np.eye(len(z) - 1 - self.nx, len(z), 1 + self.nx)
        for step in self.steps(z):
            found = self.moved(step, self.sampled(step, found, held), held)
        return found

    def sampled(self, step: PlantStep, found: Array, held: Array) -> Array:
        """The derivatives of the state after the samples of a step, by those before it and of what is held."""
        if step.samples is None:
            return found
        return step.samples[:, 1 : 1 + self.nx] @ found + step.samples[:, 1 + self.nx :] @ held

    def moved(self, step: PlantStep, found: Array, held: Array) -> Array:
        """The same at the end of a step, by those after its samples."""
        return step.motion[:, : self.nx] @ found + step.motion[:, self.nx :] @ held[: self.nv]

    def steps(self, z: Array) -> Iterator[PlantStep]:
        """Of a tick that begins with these arguments."""
        model = self.tick_model
        t, x, request, *setpoints = cut(z, self.shapes)
        x = np.asarray(self.integration.at_start(x))
        for k in range(model.plant_steps):
            begin, dofs, samples = t + k * model.stepping.length, due(k, model.plant_steps, model.samples), None
            with np.errstate(all="ignore"):
                if dofs:
                    samples = self._sample_slope(dofs)(np.concatenate([[begin], x, request, *setpoints]))
                    x = np.asarray(self.integration.sampled(begin, x, request, *setpoints, dofs=dofs))
                yield PlantStep(dofs, samples, self._motion(np.concatenate([x, request]), begin))
                x = np.asarray(model.stepping.advance(begin, x, request))

    def _stepped(self, z: Numeric, t: Numeric) -> Numeric:
        return self.tick_model.stepping.advance(t, z[: self.nx], z[self.nx :])

    def _sample_slope(self, dofs: tuple[str, ...]) -> Jacobian:
        if dofs not in self._samples:

            def sample(z: Numeric) -> Numeric:
                return self.integration.sampled(*cut(z, self.shapes), dofs=dofs)

            with unquantised():
                self._samples[dofs] = Jacobian(sample, [(sum(map(math.prod, self.shapes)),)], "slope_samples")
        return self._samples[dofs]

    @cached_property
    def _by_request(self) -> Jacobian:
        shapes = [(self.nv,), (), (self.nx,)]
        return Jacobian(lambda u, t, x: self.integration.flow(t, x, u), shapes, "slope_request")

    @cached_property
    def _corrected(self) -> Jacobian:
        return Jacobian(lambda x, t: self.integration.corrected(t, x), [(self.nx,), ()], "slope_corrected")

    def flow(self, t: Numeric, x: Array, request: Array) -> tuple[Array, Array]:
        """∂ẋ/∂x (nx, nx) and ∂ẋ/∂request (nx, nv)."""
        rate = np.asarray(self.integration.flow(t, x, request), dtype=float)
        by_state = np.asarray(self.integration.slope(np.concatenate([[t], x]), request, rate), dtype=float)[:, 1:]
        return by_state, self._by_request(request, t, x)

    @cached_property
    def _one_step(self) -> ReverseJacobian:
        """Of a step with contacts in the present modes: ∂(state at its end)/∂(x, request), from (x, request), t, h."""

        def step(z: Numeric, t: Numeric, h: Numeric) -> Numeric:
            return self.integration.one_step(t, z[: self.nx], z[self.nx :], h)

        with unquantised():
            return ReverseJacobian(step, [(self.nx + self.nv,), (), ()], "slope_contact_step")

    def _with_contacts(self, z: Array, t: Numeric) -> Array:
        """The motion with contacts, in steps as long as the next one is planned where they are chosen."""
        length, control = self.tick_model.stepping.length, self.integration.plant.control
        count = 1
        if control is not None and control.adaptive:
            planned = self.integration.plant.layout.unpack(z[: self.nx])["steps"]["length"]
            count = math.ceil(length / min(length, float(planned)))
        found, x, h = np.eye(self.nx, len(z)), z[: self.nx], length / count
        for k in range(count):
            step = self._one_step(np.concatenate([x, z[self.nx :]]), t + k * h, h)
            found = step[:, : self.nx] @ found + step[:, self.nx :] @ np.eye(self.nv, len(z), self.nx)
            x = np.asarray(self.integration.one_step(t + k * h, x, z[self.nx :], h))
        return found

    def _exponential(self, z: Array, t: Numeric) -> Array:
        """The motion linearised at its start, integrated exactly and corrected for drift."""
        from scipy.linalg import expm

        x, request, nx = z[: self.nx], z[self.nx :], self.nx
        both = np.zeros((len(z), len(z)))
        both[:nx] = np.hstack(self.flow(t, x, request))
        motion = expm(both * self.tick_model.stepping.length)[:nx]
        return self._corrected(x, t) @ motion if self.integration.plant.drifts else motion


def cut(z: Numeric, shapes: Sequence[tuple[int, ...]]) -> list[Numeric]:
    """The arguments of these shapes that lie one after the other in a vector."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [
        z[end - 1] if shape == () else z[end - math.prod(shape) : end].reshape(shape)
        for end, shape in zip(ends, shapes, strict=True)
    ]


@contextmanager
def unquantised() -> Iterator[None]:
    """Within this block encoders measure without their counts, which have no derivative."""
    before, ops.quantisation.off = ops.quantisation.off, True
    try:
        yield
    finally:
        ops.quantisation.off = before
