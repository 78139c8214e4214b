"""Arithmetic that works on numbers and on symbols alike.

Blocks use plain operators and these functions. On numbers (floats, float arrays) they are numpy; on
symbols (CasADi `SX` scalars and arrays of them, `Traced`) they build the expression that is compiled.
Conditions on symbols are symbols too, so a choice is `where(condition, a, b)`, never a Python `if`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np


class Traced(np.ndarray):
    """An array of symbols (dtype object) whose comparisons give symbols instead of truth values.

    Its elements are arrays too, of no dimension: a bare casadi scalar beside a numpy array would make
    casadi take over and turn vectors into its own column matrices.
    """

    # casadi's scalars leave an operation to us when we claim precedence
    __array_priority__ = 1e6  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Any:
        return _traced(_boxed(super().__getitem__(index)))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return np.asarray(array, dtype=object).view(Traced)


def _operator(ufunc: np.ufunc, reflected: bool) -> Any:
    def method(self: Traced, other: Any) -> Any:
        other = _boxed(other)
        return ufunc(other, self, dtype=object) if reflected else ufunc(self, other, dtype=object)

    return method


for _name, _ufunc in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "pow": np.power,
    "matmul": np.matmul,
}.items():
    setattr(Traced, f"__{_name}__", _operator(_ufunc, False))
    setattr(Traced, f"__r{_name}__", _operator(_ufunc, True))
for _name, _ufunc in {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}.items():
    setattr(Traced, f"__{_name}__", _operator(_ufunc, False))


def is_symbolic(x: Any) -> bool:
    """Whether x is a symbol or an array that may hold symbols."""
    if isinstance(x, np.ndarray):
        return x.dtype == object
    if isinstance(x, (float, int)):
        return False
    return type(x).__module__.startswith("casadi")


def _boxed(x: Any) -> np.ndarray:
    """x as an array that numpy's element-wise machinery does not try to convert."""
    if isinstance(x, np.ndarray):
        return x
    box = np.empty((), dtype=object)
    box[()] = x
    return box


def _traced(x: Any) -> Any:
    return x.view(Traced) if isinstance(x, np.ndarray) and x.dtype == object else x


@cache
def _elementwise(symbolic: str | Callable[..., Any], arity: int) -> np.ufunc:
    import casadi

    function = getattr(casadi, symbolic) if isinstance(symbolic, str) else symbolic
    return np.frompyfunc(function, arity, 1)


def _apply(numeric: Callable[..., Any], symbolic: str | Callable[..., Any], args: tuple[Any, ...]) -> Any:
    if any([is_symbolic(x) for x in args]):
        return _traced(_boxed(_elementwise(symbolic, len(args))(*map(_boxed, args))))
    return numeric(*args)


def sin(x: Any) -> Any:
    return _apply(np.sin, "sin", (x,))


def cos(x: Any) -> Any:
    return _apply(np.cos, "cos", (x,))


def tan(x: Any) -> Any:
    return _apply(np.tan, "tan", (x,))


def asin(x: Any) -> Any:
    return _apply(np.arcsin, "asin", (x,))


def acos(x: Any) -> Any:
    return _apply(np.arccos, "acos", (x,))


def atan(x: Any) -> Any:
    return _apply(np.arctan, "atan", (x,))


def atan2(y: Any, x: Any) -> Any:
    return _apply(np.arctan2, "atan2", (y, x))


def sinh(x: Any) -> Any:
    return _apply(np.sinh, "sinh", (x,))


def cosh(x: Any) -> Any:
    return _apply(np.cosh, "cosh", (x,))


def tanh(x: Any) -> Any:
    return _apply(np.tanh, "tanh", (x,))


def exp(x: Any) -> Any:
    return _apply(np.exp, "exp", (x,))


def log(x: Any) -> Any:
    return _apply(np.log, "log", (x,))


def sqrt(x: Any) -> Any:
    return _apply(np.sqrt, "sqrt", (x,))


def power(x: Any, y: Any) -> Any:
    return _apply(np.power, "power", (x, y))


def absolute(x: Any) -> Any:
    return _apply(np.abs, "fabs", (x,))


def sign(x: Any) -> Any:
    return _apply(np.sign, "sign", (x,))


def floor(x: Any) -> Any:
    return _apply(np.floor, "floor", (x,))


def ceil(x: Any) -> Any:
    return _apply(np.ceil, "ceil", (x,))


def remainder(x: Any, y: Any) -> Any:
    """x − y·trunc(x / y), with the sign of x (C's fmod)."""
    return _apply(np.fmod, "fmod", (x, y))


def minimum(x: Any, y: Any) -> Any:
    return _apply(np.fmin, "fmin", (x, y))


def maximum(x: Any, y: Any) -> Any:
    return _apply(np.fmax, "fmax", (x, y))


def clip(x: Any, lower: Any, upper: Any) -> Any:
    return minimum(maximum(x, lower), upper)


def _choose(condition: Any, a: Any, b: Any) -> Any:
    if not is_symbolic(condition):
        return a if condition else b
    import casadi

    return casadi.if_else(condition, a, b)


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b, element by element."""
    return _apply(np.where, _choose, (condition, a, b))


def smooth_sign(x: Any, width: float) -> Any:
    """x / √(x² + width²): the sign of x, rounded off over |x| < width."""
    return x / sqrt(x * x + width * width)


def logical_and(a: Any, b: Any) -> Any:
    return _apply(np.logical_and, "logic_and", (a, b))


def logical_or(a: Any, b: Any) -> Any:
    return _apply(np.logical_or, "logic_or", (a, b))


def logical_not(a: Any) -> Any:
    return _apply(np.logical_not, "logic_not", (a,))


def array(elements: Any) -> Any:
    """An array of the elements (nested sequences of scalars and arrays), symbolic when any of them is."""
    result = np.array(elements)
    if result.dtype != object:
        return result
    flat = np.empty(result.size, dtype=object)
    for k, element in enumerate(result.ravel()):
        # numpy keeps arrays of no dimension as elements
        flat[k] = np.ndarray.item(element) if isinstance(element, np.ndarray) else element
    return flat.reshape(result.shape).view(Traced)


def concatenate(parts: Sequence[Any]) -> Any:
    """The 1-D arrays one behind the other."""
    if not parts:
        return np.zeros(0)
    return _traced(np.concatenate([np.atleast_1d(_boxed(p) if is_symbolic(p) else p) for p in parts]))


def zeros(shape: int | tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape)


def total(items: Iterable[Any]) -> Any:
    """The sum of the items, 0 when there are none."""
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
    """x with a x = b by elimination without row exchanges.

    For matrices whose leading minors do not vanish (positive definite ones, I − γhJ with a small h):
    straight-line code cannot choose pivots while it runs. a: (n, n); b: (n,) or (n, m).
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
