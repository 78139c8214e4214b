"""Arithmetic that works on numbers and on symbols alike.

Blocks use plain operators and these functions. On numbers (floats, float arrays) they are numpy; on
symbols (CasADi `SX` scalars and arrays of them, `Traced`) they build the expression that is compiled.
Conditions on symbols are symbols too, so a choice is `where(condition, a, b)`, never a Python `if`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np


def _operator(name: str, reflected: bool = False) -> Any:
    """A method of `Traced`: the operation on (self, other), or on (other, self) if reflected."""

    def method(self: Traced, other: Any) -> Any:
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

    def __neg__(self) -> Any:
        return _traced(_boxed(_symbolic("NEG", 1)(self)))

    def __matmul__(self, other: Any) -> Any:
        return _matrix_product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _matrix_product(other, self)

    def __getitem__(self, index: Any) -> Any:
        return _traced(_boxed(super().__getitem__(index)))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return np.asarray(array, dtype=object).view(Traced)


def is_symbolic(x: Any) -> bool:
    """Whether x is a symbol or an array that may hold symbols."""
    if isinstance(x, np.ndarray):
        return x.dtype == object
    if isinstance(x, (float, int)):
        return False
    return type(x).__module__.startswith("casadi")


def _boxed(x: Any) -> np.ndarray:
    """x as an array that numpy's ufuncs do not convert."""
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, (list, tuple)):
        return array(x)
    box = np.empty((), dtype=object)
    box[()] = x
    return box


def _traced(x: Any) -> Any:
    return x.view(Traced) if isinstance(x, np.ndarray) and x.dtype == object else x


# operations on two numbers among symbols
_NUMERIC: dict[str, Callable[[Any, Any], Any]] = {"ADD": operator.add, "SUB": operator.sub, "MUL": operator.mul}


@cache
def _scalar(name: str, arity: int) -> Callable[..., Any]:
    """casadi's operation on one element each, numbers or symbols.

    The operators of casadi's Python classes try every overload; `SX.binary` takes a tenth of their time.
    """
    import casadi

    code, symbol = getattr(casadi, f"OP_{name}"), casadi.SX
    make: Callable[..., Any] = symbol.unary if arity == 1 else symbol.binary
    numeric = _NUMERIC.get(name)
    if numeric is None:
        return functools.partial(make, code)

    def binary(a: Any, b: Any) -> Any:
        if isinstance(a, symbol) or isinstance(b, symbol):
            return make(code, a, b)
        return numeric(a, b)

    return binary


@cache
def _symbolic(name: str, arity: int) -> np.ufunc:
    """casadi's operation on arrays, element by element."""
    return np.frompyfunc(_scalar(name, arity), arity, 1)


def _matrix_product(a: Any, b: Any) -> Any:
    """a @ b of vectors and matrices, without products with 0."""
    left, right = (np.asarray(_boxed(x), dtype=object) for x in (a, b))
    if left.shape[-1:] != right.shape[:1] or not 1 <= left.ndim <= 2 >= right.ndim >= 1:
        raise ValueError(f"matmul: shapes {left.shape} and {right.shape} do not match")
    add, multiply = _scalar("ADD", 2), _scalar("MUL", 2)
    rows = left.reshape(-1, left.shape[-1]).tolist()
    columns = right.reshape(right.shape[0], -1).T.tolist()
    out = np.empty((len(rows), len(columns)), dtype=object)
    for i, row in enumerate(rows):
        for k, column in enumerate(columns):
            value: Any = 0.0
            for x, y in zip(row, column, strict=True):
                if not (_is_zero(x) or _is_zero(y)):
                    value = multiply(x, y) if _is_zero(value) else add(value, multiply(x, y))
            out[i, k] = value
    return out.reshape(left.shape[:-1] + right.shape[1:]).view(Traced)


def _is_zero(x: Any) -> bool:
    return isinstance(x, (float, int)) and x == 0.0


def is_zero(x: Any) -> bool:
    """Whether a scalar is 0 for all values of its symbols."""
    x = np.ndarray.item(x) if isinstance(x, np.ndarray) else x
    return bool(x.is_zero()) if is_symbolic(x) else x == 0.0


def _apply(numeric: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Any:
    if any([is_symbolic(x) for x in args]):
        return _traced(_boxed(_symbolic(name, len(args))(*map(_boxed, args))))
    return numeric(*args)


def sin(x: Any) -> Any:
    return _apply(np.sin, "SIN", (x,))


def cos(x: Any) -> Any:
    return _apply(np.cos, "COS", (x,))


def tan(x: Any) -> Any:
    return _apply(np.tan, "TAN", (x,))


def asin(x: Any) -> Any:
    return _apply(np.arcsin, "ASIN", (x,))


def acos(x: Any) -> Any:
    return _apply(np.arccos, "ACOS", (x,))


def atan(x: Any) -> Any:
    return _apply(np.arctan, "ATAN", (x,))


def atan2(y: Any, x: Any) -> Any:
    return _apply(np.arctan2, "ATAN2", (y, x))


def sinh(x: Any) -> Any:
    return _apply(np.sinh, "SINH", (x,))


def cosh(x: Any) -> Any:
    return _apply(np.cosh, "COSH", (x,))


def tanh(x: Any) -> Any:
    return _apply(np.tanh, "TANH", (x,))


def exp(x: Any) -> Any:
    return _apply(np.exp, "EXP", (x,))


def log(x: Any) -> Any:
    return _apply(np.log, "LOG", (x,))


def sqrt(x: Any) -> Any:
    return _apply(np.sqrt, "SQRT", (x,))


def power(x: Any, y: Any) -> Any:
    return _apply(np.power, "POW", (x, y))


def absolute(x: Any) -> Any:
    return _apply(np.abs, "FABS", (x,))


def sign(x: Any) -> Any:
    return _apply(np.sign, "SIGN", (x,))


def floor(x: Any) -> Any:
    return _apply(np.floor, "FLOOR", (x,))


def ceil(x: Any) -> Any:
    return _apply(np.ceil, "CEIL", (x,))


def remainder(x: Any, y: Any) -> Any:
    """x − y·trunc(x / y), with the sign of x (C's fmod)."""
    return _apply(np.fmod, "FMOD", (x, y))


def minimum(x: Any, y: Any) -> Any:
    return _apply(np.fmin, "FMIN", (x, y))


def maximum(x: Any, y: Any) -> Any:
    return _apply(np.fmax, "FMAX", (x, y))


def clip(x: Any, lower: Any, upper: Any) -> Any:
    return minimum(maximum(x, lower), upper)


def _choose(condition: Any, a: Any, b: Any) -> Any:
    if not is_symbolic(condition):
        return a if condition else b
    # casadi's form of a choice: (c ? a : 0) + (!c ? b : 0)
    zero_unless, otherwise = _scalar("IF_ELSE_ZERO", 2), _scalar("NOT", 1)(condition)
    return _scalar("ADD", 2)(zero_unless(condition, a), zero_unless(otherwise, b))


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b, element by element."""
    if not any(map(is_symbolic, (condition, a, b))):
        return np.where(condition, a, b)
    choose = np.frompyfunc(_choose, 3, 1)
    return _traced(_boxed(choose(*map(_boxed, (condition, a, b)))))


def smooth_sign(x: Any, width: float) -> Any:
    """x / √(x² + width²): the sign of x, smoothed over |x| < width."""
    return x / sqrt(x * x + width * width)


def logical_and(a: Any, b: Any) -> Any:
    return _apply(np.logical_and, "AND", (a, b))


def logical_or(a: Any, b: Any) -> Any:
    return _apply(np.logical_or, "OR", (a, b))


def logical_not(a: Any) -> Any:
    return _apply(np.logical_not, "NOT", (a,))


def array(elements: Any) -> Any:
    """An array of the elements (nested sequences of scalars and arrays), symbolic if any of them is."""
    result = np.array(elements)
    if result.dtype != object:
        return result
    flat = np.empty(result.size, dtype=object)
    for k, element in enumerate(result.ravel()):
        # numpy keeps 0-dimensional arrays as elements
        flat[k] = np.ndarray.item(element) if isinstance(element, np.ndarray) else element
    return flat.reshape(result.shape).view(Traced)


def concatenate(parts: Sequence[Any]) -> Any:
    """The concatenation of 1-D arrays."""
    if not parts:
        return np.zeros(0)
    return _traced(np.concatenate([np.atleast_1d(_boxed(p) if is_symbolic(p) else p) for p in parts]))


def with_elements(vector: Any, index: Iterable[int], values: Any) -> Any:
    """The vector with the elements at the indices `index` replaced by `values`."""
    elements = list(vector)
    for k, value in zip(index, values, strict=True):
        elements[k] = value
    return array(elements)


def zeros(shape: int | tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape)


def total(items: Iterable[Any]) -> Any:
    """The sum of the items, 0 for none."""
    result: Any = 0.0
    for item in items:
        result = result + item
    return result


def dot(a: Any, b: Any) -> Any:
    return a @ b


def cross(a: Any, b: Any) -> Any:
    """a × b of two 3-vectors."""
    return array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def skew(a: Any) -> Any:
    """The matrix of `a ×`."""
    return array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def solve(a: Any, b: Any) -> Any:
    """x with a x = b by Gaussian elimination without pivoting.

    For matrices with nonzero leading minors (positive definite ones, I − γhJ with a small h): straight-line code
    cannot choose pivots at run time. a: (n, n); b: (n,) or (n, m).
    """
    n = len(b)
    a = array(np.array(a, dtype=object)) if is_symbolic(a) or is_symbolic(b) else np.array(a, dtype=float)
    x = _traced(np.array(b, dtype=a.dtype))
    for k in range(n):
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k + 1 :] = a[i, k + 1 :] - factor * a[k, k + 1 :]
            x[i] = x[i] - factor * x[k]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[k] = x[k] - a[k, j] * x[j]
        x[k] = x[k] / a[k, k]
    return x
