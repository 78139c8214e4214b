"""LLVM IR for other programs: it needs no C library but its mathematics, no heap, and no copies by functions of it; and
the negative of a fused multiply-add keeps the sign of a zero.

LLVM's code for AArch64 computes −(a b + c) as (−a) b − c in one instruction: an exact zero then is +0 instead of −0.
"""

from __future__ import annotations

import re

from cosim.core.compile.stack_array import on_stack

# bytes up to which LLVM copies in place on every target, by whole doubles where it knows that they are aligned
_IN_PLACE = 64
_COPY = re.compile(r"call void @llvm\.memcpy\.p0\.p0\.i64\(ptr (\S+), ptr (\S+), i64 (\d+), i1 false\)")
_CLEAR = re.compile(r"call void @llvm\.memset\.p0\.i64\(ptr (\S+), i8 0, i64 (\d+), i1 false\)")


_NEGATIVE = re.compile(r"^(\s*)(%\S+) = fneg (double) (%\S+)$", re.MULTILINE)


# whole numbers: a double may be a NaN whose bits a register would change
_LOOPS = """
define internal void @cosim.copy(ptr %target, ptr %source, i64 %count) noinline nounwind "no-builtins" {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %from = getelementptr inbounds i64, ptr %source, i64 %k
  %to = getelementptr inbounds i64, ptr %target, i64 %k
  %value = load i64, ptr %from, align 8
  store i64 %value, ptr %to, align 8
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %count
  br i1 %more, label %next, label %done
done:
  ret void
}
define internal void @cosim.clear(ptr %target, i64 %count) noinline nounwind "no-builtins" {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %to = getelementptr inbounds i64, ptr %target, i64 %k
  store i64 0, ptr %to, align 8
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %count
  br i1 %more, label %next, label %done
done:
  ret void
}
"""


def freestanding(ir: str) -> str:
    """The same functions; arrays that would be on the heap are on the stack."""
    return _CLEAR.sub(_cleared, _COPY.sub(_copied, on_stack(ir))) + _LOOPS


def _copied(found: re.Match[str]) -> str:
    target, source, size = found.groups()
    if int(size) <= _IN_PLACE:
        return f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {target}, ptr align 8 {source}, i64 {size}, i1 false)"
    return f"call void @cosim.copy(ptr {target}, ptr {source}, i64 {int(size) // 8})"


def _cleared(found: re.Match[str]) -> str:
    target, size = found.groups()
    if int(size) <= _IN_PLACE:
        return f"call void @llvm.memset.p0.i64(ptr align 8 {target}, i8 0, i64 {size}, i1 false)"
    return f"call void @cosim.clear(ptr {target}, i64 {int(size) // 8})"


def with_signed_zeros(ir: str) -> str:
    """The same functions, with what is negated behind a fence, which is no instruction."""
    fence = "@llvm.arithmetic.fence.f64"
    text = _NEGATIVE.sub(rf"\1\2.of = call \3 {fence}(\3 \4)\n\1\2 = fneg \3 \2.of", ir)
    return f"{text}\ndeclare double {fence}(double)\n"
