"""What integrators know of an ordinary differential equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosim.core.types import Numeric


@dataclass(frozen=True)
class System:
    """ẋ = flow(t, x), and further functions that some methods need."""

    flow: Callable[[Numeric, Numeric], Numeric]
    coordinates: np.ndarray  # indices of x that are coordinates …
    rates: Callable[[Numeric, Numeric], Numeric]  # … and their rates, (t, x) -> one each
    jacobian: Callable[[Numeric, Numeric, Numeric], tuple[Numeric, Numeric]]  # (t, x, f) -> (∂f/∂x (n, n), ∂f/∂t (n,))


Step = Callable[[System, Numeric, Numeric, Numeric], tuple[Numeric, Numeric]]
