"""From a pure function to an expression: the function is called with symbols, which record its operations.

A function is traced with arrays of known shapes. A `Routine` called during the trace of another one is not inlined
but recorded as a call, so that four evaluations of the same dynamics share one piece of code.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from weakref import WeakSet

import numpy as np

from cosim.core import ops
from cosim.core.compile.process_exits import user_code
from cosim.core.compile.stack_array import large_on_heap
from cosim.core.errors import CompileError, where_raised
from cosim.core.types import Numeric

Shape = tuple[int, ...]


class _ThreadState(threading.local):
    """The traces in progress in this thread, innermost last."""

    def __init__(self) -> None:
        self.active: list[Trace] = []
        self.inlining: list[list[RecordedCall] | None] = []


_state = _ThreadState()
# in `inlining`: a trace that was begun within the block, in which calls of routines without an expression are recorded
_OF_THE_TRACE: list[RecordedCall] = []


@contextmanager
def inlined(held: list[RecordedCall] | None = None) -> Iterator[None]:
    """Within this block calls of routines are inlined instead of recorded, because derivatives need expressions. held:
    takes the calls of routines without an expression whose results are constants for a derivative."""
    _state.inlining.append(held)
    try:
        yield
    finally:
        _state.inlining.pop()


def is_recorded(arguments: Sequence[Numeric]) -> bool:
    """Whether a routine called with these arguments becomes a call in generated code."""
    return not _state.inlining and any(map(ops.is_symbolic, arguments))


class SymbolicParameters:
    """Numbers that code takes from its caller instead of holding them as constants: `symbols` (n,) stand for them.

    They may occur anywhere in the data of a traced function. A routine that uses one of them, or calls one that does,
    has all of them as a further, hidden argument, which its calls pass on. Must stay referenced while traces use them.
    """

    def __init__(self, count: int) -> None:
        self.column, self.symbols = symbols("number", (count,))
        self._hashes = frozenset(self.column[k].element_hash() for k in range(count))
        _symbolic_parameters.add(self)

    def used_by(self, expressions: Sequence[Numeric]) -> bool:
        import casadi

        used = casadi.symvar(casadi.SX(casadi.vertcat(*expressions)))  # of numbers alone vertcat is no SX
        return any(symbol.element_hash() in self._hashes for symbol in used)


_symbolic_parameters: WeakSet[SymbolicParameters] = WeakSet()


class RoutineBase(ABC):
    """A function with machine code that others can call: `Routine`, `WhileLoop`, `RolledRoutine`.

    Called with numbers it is the Python function `fn`; called with symbols during the trace of another function it
    becomes one call in the code of that function.
    """

    name: str
    fn: Callable[..., Numeric]  # the same function in Python
    shapes: tuple[Shape, ...]  # of its arguments
    output_shapes: tuple[Shape, ...]
    uniform: tuple[int, ...] = ()  # arguments that in a batch are one array of doubles for all SIMD lanes
    symbolic_parameters: SymbolicParameters | None = None  # that it takes as a hidden argument after the others
    piecewise_constant: bool = False  # its derivative is 0
    # one that knows its derivative: (arguments, seed of the first output) -> derivatives with respect to all arguments;
    # the other outputs have none
    own_adjoint: RoutineBase | None = None
    # of one whose derivative means nothing, such as in a step in which something begins: makes a routine of nearly the
    # same values, whose derivative stands for its own
    stand_in: Callable[[], RoutineBase] | None = None

    @property
    @abstractmethod
    def callees(self) -> Sequence[RoutineBase]: ...

    @property
    @abstractmethod
    def operations(self) -> int:
        """Arithmetic operations of one evaluation."""
        ...

    @abstractmethod
    def _text(self, symbol: str, lanes: int) -> str:
        """IR of `@symbol.<lanes>`."""
        ...

    @property
    def output_sizes(self) -> tuple[int, ...]:
        return tuple(math.prod(s) for s in self.output_shapes)

    @cached_property
    def _anonymous(self) -> str:
        """The code for one lane, under the symbol `_`."""
        return self._text("_", 1)

    @property
    def _content(self) -> str:
        """What distinguishes it from others of the same name."""
        return self._anonymous

    @cached_property
    def symbol(self) -> str:
        """Its name in LLVM IR, with a hash of its content."""
        return f"{self.name}_{hashlib.sha256(self._content.encode()).hexdigest()[:12]}"

    def definition(self, lanes: int) -> str:
        """IR of `@symbol.<lanes>`."""
        own = self._anonymous.replace("@_.", f"@{self.symbol}.") if lanes == 1 else self._text(self.symbol, lanes)
        return large_on_heap(own)

    def __call__(self, *arguments: Numeric) -> Numeric:
        if is_recorded(arguments):
            return single_or_tuple(record_call(self, arguments))
        held = _state.inlining[-1] if _state.inlining else None
        if held is not None and self.piecewise_constant and any(map(ops.is_symbolic, arguments)):
            if held is _OF_THE_TRACE:
                return single_or_tuple(record_call(self, arguments))
            call, boxes = _fresh_call(self, arguments)
            held.append(call)
            return single_or_tuple(boxes)
        return self.fn(*arguments)


def single_or_tuple(results: Sequence[Numeric]) -> Numeric:
    """The only result, or all of them as a tuple."""
    return results[0] if len(results) == 1 else tuple(results)


@dataclass(frozen=True)
class RecordedCall:
    """One recorded call: `arguments` are expressions, `results` the fresh symbols that stand for its outputs.

    With a condition the call is made only if it holds; otherwise the results are `otherwise`.
    """

    routine: RoutineBase
    arguments: tuple[Numeric, ...]  # casadi SX columns
    results: tuple[Numeric, ...]
    condition: Numeric = None
    otherwise: tuple[Numeric, ...] = ()

    @property
    def expressions(self) -> tuple[Numeric, ...]:
        """All expressions that must be computed before the call."""
        return (*self.arguments, *self.otherwise, *([] if self.condition is None else [self.condition]))


@dataclass
class Trace:
    """A traced function: casadi SX columns of inputs and outputs, and the calls in between."""

    name: str
    inputs: list[Numeric] = field(default_factory=list)
    outputs: list[Numeric] = field(default_factory=list)
    output_shapes: list[Shape] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)
    symbolic_parameters: SymbolicParameters | None = None  # the last input, where one of them is used


def symbols(name: str, shape: Shape) -> tuple[Numeric, Numeric]:
    """A fresh casadi column and the same symbols as an array of `shape`."""
    import casadi

    column = casadi.SX.sym(name, math.prod(shape))
    box = np.empty(math.prod(shape), dtype=object)
    for k, element in enumerate(column.elements()):
        box[k] = element
    return column, box.reshape(shape).view(ops.Traced)


def column(value: Numeric) -> Numeric:
    """A casadi column of the elements of `value` (numbers or symbols, any shape)."""
    import casadi

    flat = np.asarray(ops._boxed(value), dtype=object).ravel()
    return casadi.vertcat(*flat) if flat.size else casadi.SX(0, 1)


def record_call(
    routine: RoutineBase, arguments: Sequence[Numeric], condition: Numeric = None, otherwise: Sequence[Numeric] = ()
) -> list[Numeric]:
    """Record a call of `routine` in the current trace; returns its outputs as symbols."""
    if not _state.active:
        raise CompileError(f"routine '{routine.name}' was called with symbols outside of a trace")
    given = tuple(np.shape(ops._boxed(a)) for a in arguments)
    if given != tuple(routine.shapes):
        raise CompileError(f"routine '{routine.name}' takes arrays of shapes {tuple(routine.shapes)}, got {given}")
    call, boxes = _fresh_call(routine, arguments, condition, otherwise)
    _state.active[-1].calls.append(call)
    return boxes


def _fresh_call(
    routine: RoutineBase, arguments: Sequence[Numeric], condition: Numeric = None, otherwise: Sequence[Numeric] = ()
) -> tuple[RecordedCall, list[Numeric]]:
    """(the call, its outputs as symbols)."""
    hidden = () if routine.symbolic_parameters is None else (routine.symbolic_parameters.column,)
    fresh = [symbols(f"{routine.name}_{k}", shape) for k, shape in enumerate(routine.output_shapes)]
    call = RecordedCall(
        routine,
        (*(column(a) for a in arguments), *hidden),
        tuple(c for c, _ in fresh),
        None if condition is None else column(condition),
        tuple(column(value) for value in otherwise),
    )
    return call, [box for _, box in fresh]


def trace(fn: Callable[..., Numeric], shapes: Sequence[Shape], name: str) -> Trace:
    """Call `fn` with symbols of the given shapes; it returns one array or a tuple of arrays.

    Raises CompileError if the function uses symbols in a way that cannot be traced, such as an `if` on them.
    """
    result = Trace(name)
    boxes = []
    for k, shape in enumerate(shapes):
        col, box = symbols(f"x{k}", shape)
        result.inputs.append(col)
        boxes.append(box)
    _forbid_float_conversion()
    _state.active.append(result)
    nested = bool(_state.inlining)
    if nested:
        _state.inlining.append(_OF_THE_TRACE)
    try:
        # no numpy warnings for arithmetic on constants, such as an infinite limit
        with np.errstate(all="ignore"), user_code():
            outputs = fn(*boxes)
    except CompileError:
        raise
    except (Exception, SystemExit) as error:  # user code may raise anything
        raise CompileError(_why_untraceable(error), where_raised(error, but=(ops.__file__, __file__))) from error
    finally:
        _state.active.pop()
        if nested:
            _state.inlining.pop()
    for value in outputs if isinstance(outputs, tuple) else (outputs,):
        array = _returned(value, fn)
        result.outputs.append(column(array))
        result.output_shapes.append(array.shape)
    expressions = [*result.outputs, *(expression for call in result.calls for expression in call.expressions)]
    for symbolic in (item for item in _symbolic_parameters if item.used_by(expressions)):
        result.inputs.append(symbolic.column)
        result.symbolic_parameters = symbolic
    return result


def _returned(value: Numeric, fn: Callable[..., Numeric]) -> np.ndarray:
    """The value returned by a function, as an array. Raises CompileError for anything else."""
    try:
        array = ops.array(value if isinstance(value, (list, np.ndarray)) else ops._boxed(value))
        elements = np.asarray(array).ravel()
        if value is not None and all(isinstance(x, numbers.Real) or x.is_scalar() for x in elements):
            return array
    except (TypeError, ValueError, AttributeError):
        pass
    what = f"returns {type(value).__name__}; return an array made by cosim.plugin.ops, or a tuple of arrays"
    raise CompileError(what, origin(fn))


@cache
def _forbid_float_conversion() -> None:
    """Make the conversion of a symbol to float an error: casadi gives NaN in float(), math and float arrays."""
    import casadi

    def strict(convert: Callable[[Numeric], Numeric]) -> Callable[[Numeric], Numeric]:
        def converted(symbol: Numeric) -> Numeric:
            if not symbol.is_constant():
                raise TypeError(
                    "a traced value is not a number yet; use cosim.plugin.ops instead of float, math and numpy"
                )
            return convert(symbol)

        return converted

    for name in ("__float__", "__int__"):
        setattr(casadi.SX, name, strict(getattr(casadi.SX, name)))


def _why_untraceable(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "truth value" in text:
        return "a Python `if`, `and`, `min` or comparison chain on a traced value; use cosim.plugin.ops.where"
    return f"cannot be traced: {type(error).__name__}: {text}"


def origin(fn: Callable[..., Numeric]) -> str:
    """The definition of a function: file:line name."""
    fn = getattr(fn, "func", fn)
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    name = getattr(fn, "__qualname__", "") or repr(fn)  # a repr may take long
    return f"{code.co_filename}:{code.co_firstlineno} {name}" if code else name
