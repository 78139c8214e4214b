"""Lines of LLVM IR as the loops over ticks need them: numbered values, elements of arrays, shared words, calls."""

from __future__ import annotations

from cosim.core.compile.mathlib import real
from cosim.simulation.loop.tick_ring import LoopStatus, RoutineCall, SharedWord


class LoopText:
    """Collects the lines of one function. Its arrays hold one double, or a vector with one double per SIMD lane, in
    each element; shared words are one whole number for all lanes."""

    def __init__(self, lanes: int = 1) -> None:
        self.lanes, self.t = lanes, real(lanes)
        self.lines: list[str] = []
        self.temporaries = 0

    def __call__(self, *lines: str) -> None:
        self.lines += lines

    def value(self, text: str) -> str:
        self.temporaries += 1
        self(f"  %v{self.temporaries} = {text}")
        return f"%v{self.temporaries}"

    def leave_when(self, condition: str, status: LoopStatus, after: str) -> None:
        """End the loop when the condition holds, else continue at the label `after`."""
        self(f"  br i1 {self.value(condition)}, label %leave.{after}, label %{after}", f"leave.{after}:")
        self.before_leaving()
        self.store(str(int(status)), SharedWord.STATUS, "release")
        self("  ret void", f"{after}:")

    def before_leaving(self) -> None:
        """What is to be done before the loop ends; nothing by default."""
        return None

    def at(self, base: str, index: int | str, kind: str = "") -> str:
        return f"getelementptr inbounds {kind or self.t}, ptr {base}, i64 {index}"

    def place(self, base: str, index: int | str, kind: str = "") -> str:
        return self.value(self.at(base, index, kind))

    def load(self, word: SharedWord, order: str = "") -> str:
        return f"load {'atomic ' * bool(order)}i64, ptr {self.place('%words', int(word), 'i64')} {order}, align 8"

    def store(self, value: str, word: SharedWord, order: str = "") -> None:
        place = self.place("%words", int(word), "i64")
        self(f"  store {'atomic ' * bool(order)}i64 {value}, ptr {place} {order}, align 8")

    def call(self, call: RoutineCall, base: str) -> None:
        """Call a routine on regions of the array `base`."""
        places = [f"ptr {self.place(base, place.start)}" for place in (*call.inputs, *call.outputs)]
        self(f"  call void @{call.routine.symbol}.{self.lanes}({', '.join(places)})")

    def copy(self, source: str, target: str, count: int) -> None:
        """Copy so many elements."""
        size = 8 * self.lanes * count
        self(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")
