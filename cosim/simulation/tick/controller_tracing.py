"""Controllers as routines of the compiled tick; one that cannot be traced stays in Python."""

from __future__ import annotations

from collections.abc import Callable

from cosim.control.control_loop import ControlLoop
from cosim.core.compile import ArrayPort, compile
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import origin
from cosim.core.errors import CompileError, is_users_file
from cosim.core.layout import Layout
from cosim.core.types import FEEDBACK, Numeric


def trace_controller(
    loop: ControlLoop, nv: int, start_shape: tuple[int, ...], compiled: bool
) -> tuple[Callable[..., Numeric], str]:
    """(`loop.update` as a routine, "") or (`loop.update`, why it cannot be traced).

    start_shape: of the flat BumplessStart of nv joints; compiled: False for plain Python.
    """
    if not compiled:
        return loop.update, ""
    joints = (nv,)
    state = [loop.tunables.values.shape, (loop.layout.size,), loop.fallback_active.shape]
    shapes = [(), *state, *[joints] * 4, (2, nv), start_shape]
    name = f"controller_{loop.name}"
    try:
        routine = Routine(loop.update, shapes, name)
        if Routine(loop.update, shapes, name).symbol != routine.symbol:
            raise CompileError(
                "does not compute the same at every call: it keeps hidden state, reads a clock or draws random numbers;"
                " keep its state in x and take the time from t"
            )
        return routine, ""
    except CompileError as error:
        loop.compiled_fallback = _compiled_fallback(loop, nv)
        return loop.update, f"{_place(error, loop)}: {error.what}"


def _place(error: CompileError, loop: ControlLoop) -> str:
    """The line of the user that cannot be traced; of no line in particular, the function."""
    place = str(error.place or "")
    return place if place and is_users_file(place) else origin(loop.block.update)


def _compiled_fallback(loop: ControlLoop, nv: int) -> Callable[..., Numeric] | None:
    """The compiled fallback of a controller that stays in Python; None without one or where it cannot be traced."""
    if loop.fallback is None:
        return None
    x = Layout(loop.fallback.initial()).size
    sizes = {
        "x": (x,),
        **{name: (nv,) for name in (*FEEDBACK, "known")},
        "locks": (2, nv),
        "hold_position": loop.index.shape,
    }
    ports = [ArrayPort("t", ()), *(ArrayPort(*item) for item in sizes.items())]
    try:
        return compile(loop.run_fallback, ports, f"fallback_{loop.name}")
    except CompileError:
        return None
