"""LLVM IR in which the negative of a fused multiply-add keeps the sign of a zero.

LLVM's code for AArch64 computes −(a b + c) as (−a) b − c in one instruction: an exact zero then is +0 instead of −0.
"""

from __future__ import annotations

import re

_NEGATIVE = re.compile(r"^(\s*)(%\S+) = fneg (double) (%\S+)$", re.MULTILINE)


def with_signed_zeros(ir: str) -> str:
    """The same functions, with what is negated behind a fence, which is no instruction."""
    fence = "@llvm.arithmetic.fence.f64"
    text = _NEGATIVE.sub(rf"\1\2.of = call \3 {fence}(\3 \4)\n\1\2 = fneg \3 \2.of", ir)
    return f"{text}\ndeclare double {fence}(double)\n"
