"""Controllers as routines of the compiled tick; one that cannot be traced stays in Python, called from the compiled
loop.

What is not the controller's own code is machine code: its inputs, references included, are computed before it, and the
guard checks its commands after it. Here its arrays are made and its result is stored.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosim.control.control_loop import ControlLoop, DeclaredInputs
from cosim.core.compile import ArrayPort, compile
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import origin
from cosim.core.errors import CompileError, is_users_file
from cosim.core.layout import Layout
from cosim.core.types import COMMAND, FEEDBACK, Numeric, Parameters

FLOAT = np.dtype(np.float64)


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


def inputs_routine(loop: ControlLoop, nv: int, start: np.ndarray) -> tuple[Routine, Layout]:
    """(the inputs of a controller, as one array, from t, q, v, effort, known acceleration (nv,), the locks
    (2, nv) and the flat BumplessStart; their places in it). start: such a one. Raises CompileError if they cannot be
    compiled, for a trajectory in Python."""
    zeros = np.zeros(nv)
    layout = Layout(loop.inputs(0.0, zeros, zeros, zeros, zeros, np.zeros((2, nv)), start))

    def inputs(*arguments: Numeric) -> Numeric:
        return layout.pack(loop.inputs(*arguments))

    return Routine(inputs, [(), *[(nv,)] * 4, (2, nv), start.shape], f"inputs_{loop.name}"), layout


class PythonController:
    """Calls a controller without fallback on regions of a memory: its inputs, parameters and state, then its state, its
    command and its signals."""

    def __init__(self, loop: ControlLoop, view: Callable[..., np.ndarray], inputs: Layout) -> None:
        """view: of the memory by path."""
        self._loop = loop
        self._t, self._parameters = view("t"), view("parameters")[loop.parameter_slice]
        self._inputs, self._state = view("python_inputs", loop.name), view("controllers", loop.name)
        self._commands = [view("controller_commands", loop.name, name) for name in COMMAND]
        self._signals = view("controller_signals", loop.name)
        each = [(name, view("controller_signals", loop.name, name)) for name in loop.signals]
        self._outputs = [*zip(COMMAND, self._commands, strict=True), *each]
        self._input_places = [(path[0], where, shape) for path, (where, shape) in inputs.places.items()]
        places = loop.state_layout.places.items()
        # whether a result in the usual form needs no other check
        self._plain = all(len(path) == 1 for path, _ in places) and all(name in loop.block.outputs for name in COMMAND)
        self._states = [(path[0], self._state[where].reshape(shape)) for path, (where, shape) in places]
        self._seen: bytes | None = None
        self._params: Parameters = loop.block.params

    def __call__(self) -> None:
        """One call. Raises what the controller raises, and WrongResult for a result of the wrong form."""
        given = self._inputs.copy()  # which the controller may keep or change
        u = DeclaredInputs({name: given[where].reshape(shape) for name, where, shape in self._input_places})
        x = self._loop.state_layout.unpack(self._state.copy())
        result = self._loop.block.update(float(self._t), self._tuned(), x, u)
        if not self._store(result):  # in another form: converted, or refused
            state, outputs = self._loop.accepted(result)
            self._state[:] = self._loop.state_layout.pack(state)
            for target, values in zip((*self._commands, self._signals.reshape(-1)), outputs, strict=True):
                target[:] = values

    def _tuned(self) -> Parameters:
        """The parameters with the values in the memory."""
        if (now := self._parameters.tobytes()) != self._seen:
            self._seen, self._params = now, self._loop.tunables.apply(self._parameters.copy())
        return self._params

    def _store(self, result: object) -> bool:
        """Store a result in the usual form, dicts of float arrays; False for any other."""
        if type(result) is not tuple or len(result) != 2 or not self._plain:
            return False
        x, y = result
        if type(x) is not dict or type(y) is not dict or len(x) != len(self._states) or len(y) != len(self._outputs):
            return False
        pairs = [(target, y.get(name)) for name, target in self._outputs]
        pairs += [(target, x.get(name)) for name, target in self._states]
        for target, value in pairs:
            if type(value) is not np.ndarray or value.dtype is not FLOAT or value.shape != target.shape:
                return False
        for target, value in pairs:
            target[...] = value
        return True
