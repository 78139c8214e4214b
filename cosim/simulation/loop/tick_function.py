"""A tick of the compiled loop as a function of its own, without ring and clock, for programs without them."""

from __future__ import annotations

from cosim.simulation.loop.tick_text import TickText


class TickFunction(TickText):
    """Writes a function that makes one tick."""

    def text(self, name: str) -> str:
        """IR of `i32 @name(memory, i64 number)`: 1 after a fault, which ends the tick; else 0."""
        self(f"define i32 @{name}(ptr %memory, i64 %number) nounwind {{", "entry:")
        self.store_time()
        self.tasks()
        self("  ret i32 0", "}")
        return "\n".join(self.lines) + "\n"

    def after_judge(self) -> None:
        self("  br i1 %faulty, label %ended, label %sound", "ended:", "  ret i32 1", "sound:")
