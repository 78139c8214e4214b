"""The derivative of each call of a tick with respect to the memory that it reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.errors import CompileError
from cosim.core.types import Array, Numeric
from cosim.simulation.plant.integration import Integration
from cosim.simulation.plant.sampling import due
from cosim.simulation.tick.memory_call import MemoryCall
from cosim.simulation.tick.tick_model import TickModel

Slope = Callable[[Array], Array]  # inputs of a call as one vector (n,) -> derivatives of its outputs (m, n)


@contextmanager
def unquantised() -> Iterator[None]:
    """Within this block encoders measure without their counts, which have no derivative."""
    before, ops.quantisation.off = ops.quantisation.off, True
    try:
        yield
    finally:
        ops.quantisation.off = before


def places_of(call: MemoryCall) -> tuple[Array, Array]:
    """Indices in the memory of the inputs (n,) and the outputs (m,) of a call."""
    inputs, outputs = (
        np.concatenate([np.arange(where.start, where.stop) for where, _ in regions])
        for regions in (call.inputs, call.outputs)
    )
    return inputs, outputs


def slope_of(call: MemoryCall, tick_model: TickModel) -> tuple[Slope, bool]:
    """(its exact derivative, True); for steps whose number depends on the state, (the motion's in the present
    modes, held over the tick: the exponential of the linearised plant, False).

    Raises CompileError for a call that has no derivative.
    """
    try:
        with unquantised():
            return Jacobian(lambda z: _flat(call.fn(*_parts(call, z))), [(_size(call),)], f"slope_{call.name}"), True
    except CompileError:
        if call.name != "advance":
            raise
    return _exponential_of(call, tick_model), False


def _exponential_of(call: MemoryCall, tick_model: TickModel) -> Slope:
    """Of `TickModel.advance`: samples of the drives, and between them the exponential of the motion."""
    integration, steps, length = tick_model.integration, tick_model.plant_steps, tick_model.stepping.length

    def slope(z: Array) -> Array:
        t, x, request, *setpoints = _parts(call, z)
        nx, rest = len(x), len(z) - 1 - len(x)
        found = np.hstack([np.zeros((nx, 1)), np.eye(nx), np.zeros((nx, rest))])
        held = np.hstack([np.zeros((rest, 1 + nx)), np.eye(rest)])
        x = integration.at_start(x)
        for k in range(steps):
            begin = t + k * length
            if dofs := due(k, steps, tick_model.samples):
                sample = _sample_slope(integration, dofs, (begin, x, request, *setpoints))
                found = sample[:, 1 : 1 + nx] @ found + sample[:, 1 + nx :] @ held
                x = np.asarray(integration.sampled(begin, x, request, *setpoints, dofs=dofs))
            motion = _motion_slope(integration, begin, x, request, length)
            found = motion[:, :nx] @ found + motion[:, nx:] @ held[: len(request)]
            x = np.asarray(tick_model.stepping.advance(begin, x, request))
        return found

    return slope


def _sample_slope(integration: Integration, dofs: tuple[str, ...], arguments: tuple[Array, ...]) -> Array:
    """∂(state after the samples)/∂(t, x, request, setpoints)."""
    shapes = [np.shape(argument) for argument in arguments]
    z = np.concatenate([np.reshape(argument, -1) for argument in arguments])

    def sample(z: Numeric) -> Numeric:
        return integration.sampled(*_cut(z, shapes), dofs=dofs)

    with unquantised():
        return Jacobian(sample, [z.shape], "slope_samples")(z)


def _motion_slope(integration: Integration, t: Array, x: Array, request: Array, length: float) -> Array:
    """∂(x after `length`)/∂(x, request) of the motion linearised at x, integrated exactly and corrected for drift."""
    from scipy.linalg import expm

    rate = np.asarray(integration.flow(t, x, request), dtype=float)
    by_state = np.asarray(integration.slope(np.concatenate([[t], x]), request, rate), dtype=float)[:, 1:]
    flow = Jacobian(lambda u, t, x: integration.flow(t, x, u), [request.shape, (), x.shape], "slope_request")
    both = np.zeros((len(x) + len(request),) * 2)
    both[: len(x)] = np.hstack([by_state, flow(request, t, x)])
    motion = expm(both * length)[: len(x)]
    if not integration.plant.drifts:
        return motion
    corrected = Jacobian(lambda x, t: integration.corrected(t, x), [x.shape, ()], "slope_corrected")
    return corrected(x, t) @ motion


def _size(call: MemoryCall) -> int:
    return sum(math.prod(region.shape) for region in call.inputs)


def _parts(call: MemoryCall, z: Numeric) -> list[Numeric]:
    """The arguments of a call from one vector."""
    return _cut(z, [region.shape for region in call.inputs])


def _cut(z: Numeric, shapes: list[tuple[int, ...]]) -> list[Numeric]:
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [
        z[end - 1] if shape == () else z[end - math.prod(shape) : end].reshape(shape)
        for end, shape in zip(ends, shapes, strict=True)
    ]


def _flat(results: Numeric) -> Numeric:
    parts = results if isinstance(results, tuple) else (results,)
    return ops.concatenate([ops.array(part).reshape(-1) for part in parts])
