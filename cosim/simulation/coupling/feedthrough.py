"""Direct feedthrough of a pure function, found in its trace: which outputs depend on which inputs at the same time."""

from __future__ import annotations

from collections.abc import Iterable

from cosim.core.compile.trace import Trace
from cosim.core.layout import Layout
from cosim.core.types import Numeric


def feedthrough_of(trace: Trace, inputs: Layout, outputs: Layout) -> frozenset[tuple[str, str]]:
    """(input, output) pairs of a function of (t, x, u) with flat inputs u, whose last result is the flat outputs.

    A call depends with all its results on whatever any of its arguments depends on.
    """
    import casadi

    column, result = trace.inputs[2], trace.outputs[-1]
    found = set()
    for (name,), (where, _) in inputs.places.items():
        reached = {element.element_hash() for element in casadi.vertsplit(column[where])}
        for call in trace.calls:
            if _uses(call.expressions, reached):
                reached |= {element.element_hash() for each in call.results for element in casadi.vertsplit(each)}
        found |= {(name, out) for (out,), (place, _) in outputs.places.items() if _uses([result[place]], reached)}
    return frozenset(found)


def _uses(expressions: Iterable[Numeric], symbols: set[int]) -> bool:
    import casadi

    return any(s.element_hash() in symbols for e in expressions for s in casadi.symvar(casadi.SX(e)))
