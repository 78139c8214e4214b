"""Arithmetic that works on numbers and on symbols alike.

Blocks use plain operators and these functions. On numbers (floats, float arrays) they are numpy; on
symbols (CasADi `SX` scalars and arrays of them, `Traced`) they build the expression that is compiled.
Conditions on symbols are symbols too, so a choice is `where(condition, a, b)`, never a Python `if`.
"""

from __future__ import annotations

import functools
import math
import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from cosim.core.types import Numeric


def _operator(name: str, reflected: bool = False) -> Any:  # numpy declares operators with overloads
    """A method of `Traced`: the operation on (self, other), or on (other, self) if reflected."""

    def method(self: Traced, other: Numeric) -> Numeric:
        pair = (_boxed(other), self) if reflected else (self, _boxed(other))
        return _traced(_boxed(_symbolic(name, 2)(*pair)))

    return method


class Traced(np.ndarray):
    """An array of symbols (dtype object) whose comparisons give symbols instead of truth values.

    Its elements are 0-dimensional arrays: in an operation of a plain casadi scalar with a numpy array, casadi would
    convert vectors to its own column matrices.
    """

    # casadi's scalars leave an operation to the operand with the higher priority
    __array_priority__ = 1e6  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    __add__, __radd__ = _operator("ADD"), _operator("ADD", reflected=True)
    __sub__, __rsub__ = _operator("SUB"), _operator("SUB", reflected=True)
    __mul__, __rmul__ = _operator("MUL"), _operator("MUL", reflected=True)
    __truediv__, __rtruediv__ = _operator("DIV"), _operator("DIV", reflected=True)
    __pow__, __rpow__ = _operator("POW"), _operator("POW", reflected=True)
    __lt__, __gt__ = _operator("LT"), _operator("LT", reflected=True)
    __le__, __ge__ = _operator("LE"), _operator("LE", reflected=True)
    __eq__, __ne__ = _operator("EQ"), _operator("NE")

    def __neg__(self) -> Numeric:
        return _traced(_boxed(_symbolic("NEG", 1)(self)))

    def __matmul__(self, other: Numeric) -> Numeric:
        return _matrix_product(self, other)

    def __rmatmul__(self, other: Numeric) -> Numeric:
        return _matrix_product(other, self)

    def __getitem__(self, index: Any) -> Numeric:  # any of numpy's indices
        return _traced(_boxed(super().__getitem__(index)))

    def __array_wrap__(self, array: np.ndarray, context: object = None, return_scalar: bool = False) -> Numeric:
        return np.asarray(array, dtype=object).view(Traced)


def is_symbolic(x: Numeric) -> bool:
    """Whether x is a symbol or an array that may hold symbols."""
    if isinstance(x, np.ndarray):
        return x.dtype == object
    if isinstance(x, (float, int)):
        return False
    return type(x).__module__.startswith("casadi")


def _boxed(x: Numeric) -> np.ndarray:
    """x as an array that numpy's ufuncs do not convert."""
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, (list, tuple)):
        return array(x)
    box = np.empty((), dtype=object)
    box[()] = x
    return box


def _traced(x: Numeric) -> Numeric:
    return x.view(Traced) if isinstance(x, np.ndarray) and x.dtype == object else x


# operations on two numbers among symbols, and the number that changes nothing on the right, and on the left
_NUMERIC: dict[str, tuple[Callable[[Numeric, Numeric], Numeric], float, float | None]] = {
    "ADD": (operator.add, 0.0, 0.0),
    "SUB": (operator.sub, 0.0, None),
    "MUL": (operator.mul, 1.0, 1.0),
}


@cache
def _scalar(name: str, arity: int) -> Callable[..., Numeric]:
    """casadi's operation on one element each, numbers or symbols.

    The operators of casadi's Python classes try every overload; `SX.binary` takes a tenth of their time, and most
    operations are with 0 or 1: they give what casadi would give.
    """
    import casadi

    code, symbol = getattr(casadi, f"OP_{name}"), casadi.SX
    make: Callable[..., Numeric] = symbol.unary if arity == 1 else symbol.binary
    if name not in _NUMERIC:
        return functools.partial(make, code)
    numeric, right, left = _NUMERIC[name]
    product = name == "MUL"

    def binary(a: Numeric, b: Numeric) -> Numeric:
        # arrays of one element are neither symbols nor numbers
        if isinstance(b, symbol):
            if isinstance(a, float | int):
                if a == left:
                    return b
                if product and a == 0.0:
                    return 0.0
            return make(code, a, b)
        if not isinstance(a, symbol):
            return numeric(a, b)
        if isinstance(b, float | int):
            if b == right:
                return a
            if product and b == 0.0:
                return 0.0
        return make(code, a, b)

    return binary


@cache
def _symbolic(name: str, arity: int) -> np.ufunc:
    """casadi's operation on arrays, element by element."""
    return np.frompyfunc(_scalar(name, arity), arity, 1)


def _matrix_product(a: Numeric, b: Numeric) -> Numeric:
    """a @ b of vectors and matrices, without products with 0."""
    left, right = (np.asarray(_boxed(x), dtype=object) for x in (a, b))
    if left.shape[-1:] != right.shape[:1] or not 1 <= left.ndim <= 2 >= right.ndim >= 1:
        raise ValueError(f"matmul: shapes {left.shape} and {right.shape} do not match")
    add, multiply = _scalar("ADD", 2), _scalar("MUL", 2)
    rows = [[None if _is_zero(x) else x for x in row] for row in np.atleast_2d(left).tolist()]
    columns = [[(k, y) for k, y in enumerate(column) if not _is_zero(y)] for column in np.atleast_2d(right.T).tolist()]
    out = []
    for row in rows:
        for column in columns:
            value: Numeric = 0.0
            for k, y in column:
                if (x := row[k]) is not None:
                    value = add(value, multiply(x, y))
            out.append(value)
    product = np.empty(len(out), dtype=object)
    product[:] = out
    return product.reshape(left.shape[:-1] + right.shape[1:]).view(Traced)


def _is_zero(x: Numeric) -> bool:
    return isinstance(x, (float, int)) and x == 0.0


def is_zero(x: Numeric) -> bool:
    """Whether a scalar is 0 for all values of its symbols."""
    x = np.ndarray.item(x) if isinstance(x, np.ndarray) else x
    return bool(x.is_zero()) if is_symbolic(x) else x == 0.0


def is_infinite(x: Numeric) -> bool:
    """Whether a scalar is the constant ∞ or −∞; a symbol is not."""
    return not is_symbolic(x) and math.isinf(x)


def _apply(numeric: Callable[..., Numeric], name: str, args: tuple[Numeric, ...]) -> Numeric:
    if any([is_symbolic(x) for x in args]):
        return _traced(_boxed(_symbolic(name, len(args))(*map(_boxed, args))))
    return numeric(*args)


def sin(x: Numeric) -> Numeric:
    return _apply(np.sin, "SIN", (x,))


def cos(x: Numeric) -> Numeric:
    return _apply(np.cos, "COS", (x,))


def tan(x: Numeric) -> Numeric:
    return _apply(np.tan, "TAN", (x,))


def asin(x: Numeric) -> Numeric:
    return _apply(np.arcsin, "ASIN", (x,))


def acos(x: Numeric) -> Numeric:
    return _apply(np.arccos, "ACOS", (x,))


def atan(x: Numeric) -> Numeric:
    return _apply(np.arctan, "ATAN", (x,))


def atan2(y: Numeric, x: Numeric) -> Numeric:
    return _apply(np.arctan2, "ATAN2", (y, x))


def sinh(x: Numeric) -> Numeric:
    return _apply(np.sinh, "SINH", (x,))


def cosh(x: Numeric) -> Numeric:
    return _apply(np.cosh, "COSH", (x,))


def tanh(x: Numeric) -> Numeric:
    return _apply(np.tanh, "TANH", (x,))


def exp(x: Numeric) -> Numeric:
    return _apply(np.exp, "EXP", (x,))


def log(x: Numeric) -> Numeric:
    return _apply(np.log, "LOG", (x,))


def sqrt(x: Numeric) -> Numeric:
    return _apply(np.sqrt, "SQRT", (x,))


def power(x: Numeric, y: Numeric) -> Numeric:
    return _apply(np.power, "POW", (x, y))


def reciprocal(x: Numeric) -> Numeric:
    """1 / x, which stays a factor in products: casadi writes a (1 / x) as a / x, one division for each a, but
    not where 1 / x has got the sign of x, which machine code leaves out."""
    return _apply(np.copysign, "COPYSIGN", (1.0 / x, x))


def abs(x: Numeric) -> Numeric:
    return _apply(np.abs, "FABS", (x,))


def sign(x: Numeric) -> Numeric:
    return _apply(np.sign, "SIGN", (x,))


def floor(x: Numeric) -> Numeric:
    return _apply(np.floor, "FLOOR", (x,))


def ceil(x: Numeric) -> Numeric:
    return _apply(np.ceil, "CEIL", (x,))


class _Quantisation(threading.local):
    """The switch of `quantised`, one in each thread. off: it is its mean, which has a derivative."""

    off = False


quantisation = _Quantisation()


def quantised(x: Numeric, size: Numeric) -> Numeric:
    """The whole multiple of `size` next to x."""
    return x if quantisation.off else size * floor(x / size + 0.5)


def remainder(x: Numeric, y: Numeric) -> Numeric:
    """x − y·trunc(x / y), with the sign of x (C's fmod)."""
    return _apply(np.fmod, "FMOD", (x, y))


def minimum(x: Numeric, y: Numeric) -> Numeric:
    return _apply(np.fmin, "FMIN", (x, y))


def maximum(x: Numeric, y: Numeric) -> Numeric:
    return _apply(np.fmax, "FMAX", (x, y))


def clip(x: Numeric, lower: Numeric, upper: Numeric) -> Numeric:
    return minimum(maximum(x, lower), upper)


def _choose(condition: Numeric, a: Numeric, b: Numeric) -> Numeric:
    if not is_symbolic(condition):
        return a if condition else b
    # casadi's form of a choice: (c ? a : 0) + (!c ? b : 0)
    zero_unless, otherwise = _scalar("IF_ELSE_ZERO", 2), _scalar("NOT", 1)(condition)
    return _scalar("ADD", 2)(zero_unless(condition, a), zero_unless(otherwise, b))


def where(condition: Numeric, a: Numeric, b: Numeric) -> Numeric:
    """a where the condition holds, else b, element by element."""
    if not any(map(is_symbolic, (condition, a, b))):
        return np.where(condition, a, b)
    choose = np.frompyfunc(_choose, 3, 1)
    return _traced(_boxed(choose(*map(_boxed, (condition, a, b)))))


def smooth_sign(x: Numeric, width: float) -> Numeric:
    """x / √(x² + width²): the sign of x, smoothed over |x| < width."""
    return x / sqrt(x * x + width * width)


def logical_and(a: Numeric, b: Numeric) -> Numeric:
    return _apply(np.logical_and, "AND", (a, b))


def logical_or(a: Numeric, b: Numeric) -> Numeric:
    return _apply(np.logical_or, "OR", (a, b))


def logical_not(a: Numeric) -> Numeric:
    return _apply(np.logical_not, "NOT", (a,))


def array(elements: Numeric) -> Numeric:
    """An array of the elements (nested sequences of scalars and arrays), symbolic if any of them is."""
    result = np.array(elements)
    if result.dtype != object:
        return result
    flat = np.empty(result.size, dtype=object)
    for k, element in enumerate(result.ravel()):
        # numpy keeps 0-dimensional arrays as elements
        flat[k] = np.ndarray.item(element) if isinstance(element, np.ndarray) else element
    return flat.reshape(result.shape).view(Traced)


def concatenate(parts: Sequence[Numeric]) -> Numeric:
    """The concatenation of 1-D arrays."""
    if not parts:
        return np.zeros(0)
    return _traced(np.concatenate([_vector(p) for p in parts]))


def _vector(x: Numeric) -> np.ndarray:
    if type(x) is np.ndarray and x.ndim == 1:  # most are
        return x
    return np.atleast_1d(_boxed(x) if is_symbolic(x) else x)


def set_at(vector: Numeric, index: Iterable[int], values: Numeric) -> Numeric:
    """The vector with the elements at the indices `index` replaced by `values`."""
    elements = list(vector)
    for k, value in zip(index, values, strict=True):
        elements[k] = value
    return array(elements)


def zeros(shape: int | tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape)


class _Loops:
    """The hook by which `repeat` on symbols becomes a loop of machine code. traced: writes the loop, set by
    `cosim.core.compile`; without it `repeat` is unrolled."""

    traced: Callable[..., Numeric] | None = None


loops = _Loops()


def repeat(fn: Callable[..., Numeric], count: int, x: Numeric, *others: Numeric) -> Numeric:
    """x after x = fn(x, *others) has been applied `count` times; arrays keep their shapes. In machine code it is a
    loop, so that its length does not grow with the count."""
    if loops.traced is not None and any(map(is_symbolic, (x, *others))):
        return loops.traced(fn, count, x, *others)
    for _ in range(count):
        x = fn(x, *others)
    return x


def sum(items: Iterable[Numeric]) -> Numeric:
    """The sum of the items, 0 for none."""
    result: Numeric = 0.0
    for item in items:
        result = result + item
    return result


def dot(a: Numeric, b: Numeric) -> Numeric:
    return a @ b


def cross(a: Numeric, b: Numeric) -> Numeric:
    """a × b of two 3-vectors."""
    if is_symbolic(a) or is_symbolic(b):
        (x, y, z), (u, v, w) = (np.asarray(_boxed(vector), dtype=object).tolist() for vector in (a, b))
        subtract, multiply = _scalar("SUB", 2), _scalar("MUL", 2)
        return array(
            [
                subtract(multiply(y, w), multiply(z, v)),
                subtract(multiply(z, u), multiply(x, w)),
                subtract(multiply(x, v), multiply(y, u)),
            ]
        )
    return array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def skew(a: Numeric) -> Numeric:
    """The matrix of `a ×`."""
    return array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def solve(a: Numeric, b: Numeric) -> Numeric:
    """x with a x = b by Gaussian elimination without pivoting.

    For matrices with nonzero leading minors (positive definite ones, I − γhJ with a small h): straight-line code
    cannot choose pivots at run time. a: (n, n); b: (n,) or (n, m).
    """
    n = len(b)
    a = array(np.array(a, dtype=object)) if is_symbolic(a) or is_symbolic(b) else np.array(a, dtype=float)
    x, inverse = _traced(np.array(b, dtype=a.dtype)), []
    for k in range(n):
        inverse.append(1.0 / a[k, k])
        for i in range(k + 1, n):
            factor = a[i, k] * inverse[k]
            a[i, k + 1 :] = a[i, k + 1 :] - factor * a[k, k + 1 :]
            x[i] = x[i] - factor * x[k]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[k] = x[k] - a[k, j] * x[j]
        x[k] = x[k] * inverse[k]
    return x


_RENAMED = {"absolute": "abs", "total": "sum", "with_elements": "set_at"}

if not TYPE_CHECKING:  # for which names that do not exist are errors

    def __getattr__(name: str) -> NoReturn:
        new = _RENAMED.get(name)
        raise AttributeError(f"ops.{name} is now ops.{new}" if new else f"there is no function ops.{name}")
