"""IR of an array that is local to a function call."""

from __future__ import annotations

# larger arrays are allocated on the heap: threads may have small stacks
STACK_BYTES = 1 << 16


def stack_array(pointer: str, size: int) -> tuple[list[str], list[str]]:
    """(first lines, last lines) of a function with an array of `size` bytes, aligned to cache lines."""
    if size <= STACK_BYTES:
        return [f"  {pointer} = alloca [{max(size, 1)} x i8], align 64"], []
    return [
        f"  {pointer}.memory = call ptr @malloc(i64 {size + 64})",
        f"  {pointer}.address = ptrtoint ptr {pointer}.memory to i64",
        f"  {pointer}.beyond = add i64 {pointer}.address, 63",
        f"  {pointer}.aligned = and i64 {pointer}.beyond, -64",
        f"  {pointer} = inttoptr i64 {pointer}.aligned to ptr",
    ], [f"  call void @free(ptr {pointer}.memory)"]
