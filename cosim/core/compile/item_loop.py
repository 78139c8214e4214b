"""One code for many like items: a function of one item, called in a loop, with several items at a time in SIMD lanes.

Items are gathered from flat arrays by index, and results scattered to one. In the code of one state TOGETHER items are
the lanes of a call; in the code of a batch the lanes are states already, and items come one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core.compile.loops import Buffer, LoopWriter
from cosim.core.compile.mathlib import TOGETHER, real
from cosim.core.compile.trace import RoutineBase, Shape

# IR of `@symbol.<lanes>(ptr row, ptr shared, ptr result)` of one item from (symbol, lanes, uniform inputs)
ItemText = Callable[[str, int, Sequence[int]], str]
ROW, SHARED = 0, 1  # inputs of the code of one item


@dataclass(frozen=True)
class Elements:
    """One scalar per item: the elements `places` (n,) of an input array."""

    array: int
    places: np.ndarray


@dataclass(frozen=True)
class Table:
    """One constant per item."""

    values: np.ndarray  # (n,)


Source = Elements | Table


class ItemLoop(RoutineBase):
    """n items: a row (w,) of each from its sources, shared (m,) values of all, a result (r,) at its targets.

    Arguments: arrays that sources refer to, then shared. targets: of each scalar of the result, where (n,) it is in
    the output (n r,). n ≥ TOGETHER.
    """

    def __init__(
        self,
        name: str,
        text: ItemText,
        sources: Sequence[Source],
        targets: Sequence[np.ndarray],
        shapes: Sequence[Shape],
        operations: int,
    ) -> None:
        """operations: arithmetic operations of one item."""
        self.name, self.text, self.sources, self.targets, self.shapes = name, text, sources, targets, tuple(shapes)
        self.output_shapes = ((sum(map(len, targets)),),)
        self._operations = operations

    @property
    def callees(self) -> Sequence[RoutineBase]:
        return ()

    @property
    def operations(self) -> int:
        return self._operations * len(self.targets[0])

    def _text(self, symbol: str, lanes: int) -> str:
        writer = _ItemWriter(f"{symbol}.{lanes}", lanes, len(self.targets[0]), len(self.shapes))
        writer.write(f"{symbol}.item", self.sources, self.targets)
        buffers: list[Buffer] = []
        for name, values in (("row", self.sources), ("result", self.targets)):
            Buffer.workspace(name, len(values), writer.together, buffers)
        # states differ in what their items share
        uniform = (SHARED,) if lanes == 1 else ()
        return self.text(f"{symbol}.item", writer.width, uniform) + writer.text(buffers)


class _ItemWriter(LoopWriter):
    """Writes the loop of an `ItemLoop`."""

    def __init__(self, symbol: str, lanes: int, count: int, inputs: int) -> None:
        super().__init__(symbol, lanes, count, inputs, 1)
        self.shared = f"%in{inputs - 1}"
        self.together = TOGETHER if lanes == 1 else 1
        self.width = max(lanes, self.together)  # lanes of the code of one item
        self.wide = real(self.width)

    def write(self, item: str, sources: Sequence[Source], targets: Sequence[np.ndarray]) -> None:
        k = self.begin(step=self.together)
        if self.together > 1:  # the last group ends with the last item
            first, last = f"%first{self.loops}", self.bodies - self.together
            self.lines.append(f"  %early{self.loops} = icmp slt i64 {k}, {last}")
            self.lines.append(f"  {first} = select i1 %early{self.loops}, i64 {k}, i64 {last}")
            k = first
        for place, source in enumerate(sources):
            self.store_wide(self.gather_items(source, k), self.wide_address("%row", place))
        self.lines.append(f"  call void @{item}.{self.width}(ptr %row, ptr {self.shared}, ptr %result)")
        for place, target in enumerate(targets):
            value = self.load_wide(self.wide_address("%result", place))
            self.scatter_items(value, target, k)
        self.end()

    def gather_items(self, source: Source, k: str) -> str:
        """One scalar of the items from k on, as lanes; or of the item k of all states."""
        if isinstance(source, Table):
            values = self.array("double", source.values.tolist())
            address = self.add(f"getelementptr inbounds double, ptr {values}, i64 {k}")
            return self.load_wide(address) if self.together > 1 else self._for_all(address)
        base, places = f"%in{source.array}", source.places
        if self.together == 1 or _consecutive(places):
            return self.load_wide(self.element(base, places, k))
        value = "poison"
        for lane in range(self.together):
            address = self.element(base, places, self.add(f"add i64 {k}, {lane}"))
            one = self.add(f"load double, ptr {address}, align 8")
            value = self.add(f"insertelement {self.wide} {value}, double {one}, i32 {lane}")
        return value

    def scatter_items(self, value: str, places: np.ndarray, k: str) -> None:
        if self.together == 1 or _consecutive(places):
            self.store_wide(value, self.element("%out0", places, k))
            return
        for lane in range(self.together):
            one = self.add(f"extractelement {self.wide} {value}, i32 {lane}")
            address = self.element("%out0", places, self.add(f"add i64 {k}, {lane}"))
            self.lines.append(f"  store double {one}, ptr {address}, align 8")

    def element(self, base: str, places: np.ndarray, k: str) -> str:
        """The address of the element of item k."""
        if _consecutive(places):
            index = self.add(f"add i64 {k}, {int(places[0])}") if places[0] else k
        else:
            index = self.lookup("i64", places.tolist(), k)
        return self.add(f"getelementptr inbounds {self.t}, ptr {base}, i64 {index}")

    def wide_address(self, base: str, place: int) -> str:
        return self.add(f"getelementptr inbounds {self.wide}, ptr {base}, i64 {place}")

    def load_wide(self, address: str) -> str:
        return self.add(f"load {self.wide}, ptr {address}, align 8")

    def store_wide(self, value: str, address: str) -> None:
        self.lines.append(f"  store {self.wide} {value}, ptr {address}, align 8")

    def _for_all(self, address: str) -> str:
        """The double at an address, repeated for every state."""
        value = self.add(f"load double, ptr {address}, align 8")
        first = self.add(f"insertelement {self.wide} poison, double {value}, i32 0")
        return self.add(f"shufflevector {self.wide} {first}, {self.wide} poison, <{self.width} x i32> zeroinitializer")


def _consecutive(places: np.ndarray) -> bool:
    return bool(np.all(np.diff(places) == 1))
