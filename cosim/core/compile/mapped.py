"""A function of one item, mapped over many: traced once, with the items in SIMD lanes of one code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cosim.core import ops
from cosim.core.compile import emit
from cosim.core.compile.item_loop import Elements, ItemLoop, Source, Table
from cosim.core.compile.pytree import Form, Pytree, flatten
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import Shape
from cosim.core.types import Numeric


class Mapped(ItemLoop):
    """fn(constants, *pieces) -> (r,) for n items, as one routine of arrays: (n r,), item by item.

    constants: a pytree of numbers per item, all of one structure; those that differ become tables. places: for each
    argument the elements (n, w) that are the piece of each item. n ≥ TOGETHER.
    """

    def __init__(
        self,
        fn: Callable[..., Numeric],
        constants: Sequence[Pytree],
        places: Sequence[np.ndarray],
        shapes: Sequence[Shape],
        name: str,
    ) -> None:
        form, _ = Form.of(constants[0])
        for item in constants[1:]:
            form = form.merged(Form.of(item)[0])
        widths = [where.shape[1] for where in places]
        sources: list[Source] = [Elements(k, column) for k, where in enumerate(places) for column in where.T]
        rows = np.array([form.row(flatten(item)[0]) for item in constants], dtype=float)
        sources += [Table(column) for column in rows.T]

        def of_row(row: Numeric) -> Numeric:
            ends = np.cumsum(widths)
            pieces = [row[end - width : end] for width, end in zip(widths, ends, strict=True)]
            return fn(form.fill(row[sum(widths) :]), *pieces)

        item = Routine(of_row, [(len(sources),)], name)

        def text(symbol: str, lanes: int, uniform: Sequence[int]) -> str:
            # not the loops that a long graph may have: the lanes are taken
            return emit.function(symbol, item.graph, [], lanes, 2, uniform)

        ((count,),) = item.output_shapes
        targets = list(np.arange(len(constants) * count).reshape(-1, count).T)
        super().__init__(name, text, sources, targets, shapes, item.operations)
        self.item, self.constants, self.places = fn, constants, places

    def fn(self, *vectors: Numeric) -> Numeric:
        """On numbers, or inlined in an expression: item by item."""
        results = []
        for k, constants in enumerate(self.constants):
            pieces = (vector[where[k]] for vector, where in zip(vectors, self.places, strict=True))
            results.append(self.item(constants, *pieces))
        return ops.concatenate(results)
