"""sin and cos in LLVM IR, for one double or a vector of SIMD lanes, with a common range reduction.

Argument reduction by three parts of π/2 (Cody and Waite), then the minimax polynomials of fdlibm on [−π/4, π/4], in
products and sums that no target fuses: the bits are the same on all. Errors in units in the last place:

    range           bound   largest found    at
    |x| ≤ π/4       0.76    0.7563 (cos)     0x1.6ff63794cd228p-1
                            0.7295 (sin)     0x1.89ba89b905429p-1
    |x| < 1.6 · 10⁶ 1.55    1.5234 (sin)     0x1.9de94547e613ap+19
                            1.5288 (cos)     0x1.2bcbff3c839a7p+20

Found among some 10⁸ arguments, most of them where the rounding of the remainder r of the reduction weighs most: |r|
just above ½ has the unit 2⁻⁵³, its sine below ½ the unit 2⁻⁵⁴. Lanes beyond the range (or not finite) use the C
library.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence

TWO_OVER_PI = 0.6366197723675814
# π/2 in two parts of 33 bits, whose products with whole numbers below 2²⁰ are exact, and the rest
PIO2_PARTS = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
SIN_COEFFICIENTS = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COS_COEFFICIENTS = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
REDUCIBLE = 1.6e6  # for these parts
MAX_ULP_REDUCED, MAX_ULP = 0.76, 1.55  # for |x| ≤ π/4, and for all reducible x


def real(lanes: int) -> str:
    return "double" if lanes == 1 else f"<{lanes} x double>"


def suffix(lanes: int) -> str:
    """The type suffix of an LLVM intrinsic."""
    return "f64" if lanes == 1 else f"v{lanes}f64"


def constant(value: float, lanes: int = 1) -> str:
    """A literal of type T, exact to the bit."""
    literal = "0x" + struct.pack(">d", value).hex().upper()
    if lanes == 1:
        return literal
    return f"splat (double {literal})"


# arguments that scalar code computes together, as lanes
TOGETHER = 4


def sincos(lanes: int) -> str:
    """IR of `@cosim.sincos.<lanes>(T) -> {T, T}`, (sin, cos); for scalar code also `@cosim.sincos.together` of TOGETHER
    lanes. A lane gets the same bits in all of them."""
    return _sincos(1, "1") + _sincos(TOGETHER, str(TOGETHER)) if lanes == 1 else _sincos(lanes, str(lanes))


def _sincos(lanes: int, name: str) -> str:
    t, s, n = real(lanes), suffix(lanes), lanes
    integer = "i32" if lanes == 1 else f"<{lanes} x i32>"
    bit = "i1" if lanes == 1 else f"<{lanes} x i1>"

    def splat(value: int) -> str:
        return str(value) if lanes == 1 else f"splat (i32 {value})"

    fresh = itertools.count()

    def op(instruction: str, a: str, b: str, name: str = "") -> str:
        name = name or f"%t{next(fresh)}"
        body.append(f"  {name} = {instruction} {t} {a}, {b}")
        return name

    def number(value: float) -> str:
        return constant(value, n)

    def polynomial(z: str, coefficients: Sequence[float]) -> str:
        """By Horner's rule."""
        value = number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = op("fadd", number(coefficient), op("fmul", z, value))
        return value

    if lanes == 1:
        reduce_any = ["  %any = or i1 %far, false"]
    else:
        reduce_any = [f"  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1({bit} %far)"]
    body = [
        f"define internal {{ {t}, {t} }} @cosim.sincos.{name}({t} %x) alwaysinline nounwind {{",
        "entry:",
        f"  %size = call {t} @llvm.fabs.{s}({t} %x)",
        f"  %far = fcmp uge {t} %size, {constant(REDUCIBLE, n)}",
        *reduce_any,
        f"  %turns = fmul {t} %x, {constant(TWO_OVER_PI, n)}",
        f"  %k = call {t} @llvm.rint.{s}({t} %turns)",
        f"  %quadrant = fptosi {t} %k to {integer}",
    ]
    first, second, third = (op("fmul", "%k", number(part)) for part in PIO2_PARTS)  # the last one alone is rounded
    exact = op("fsub", "%x", first)
    close = op("fsub", exact, second)
    rounded = op("fsub", op("fsub", exact, close), second)  # what `close` was rounded by
    r = op("fsub", close, op("fsub", third, rounded))
    z = op("fmul", r, r)
    op("fadd", r, op("fmul", op("fmul", r, z), polynomial(z, SIN_COEFFICIENTS)), "%sine")
    half = op("fmul", z, number(0.5))
    near = op("fsub", number(1.0), half)
    rest = op("fsub", op("fsub", number(1.0), near), half)  # what `near` was rounded by
    tail = op("fmul", op("fmul", z, z), polynomial(z, COS_COEFFICIENTS))
    op("fadd", near, op("fadd", tail, rest), "%cosine")
    body += [
        f"  %odd.bit = and {integer} %quadrant, {splat(1)}",
        f"  %odd = icmp ne {integer} %odd.bit, {splat(0)}",
        f"  %sin.abs = select {bit} %odd, {t} %cosine, {t} %sine",
        f"  %cos.abs = select {bit} %odd, {t} %sine, {t} %cosine",
        f"  %sin.bit = and {integer} %quadrant, {splat(2)}",
        f"  %sin.neg = icmp ne {integer} %sin.bit, {splat(0)}",
        f"  %next = add {integer} %quadrant, {splat(1)}",
        f"  %cos.bit = and {integer} %next, {splat(2)}",
        f"  %cos.neg = icmp ne {integer} %cos.bit, {splat(0)}",
        f"  %sin.minus = fneg {t} %sin.abs",
        f"  %cos.minus = fneg {t} %cos.abs",
        f"  %sin = select {bit} %sin.neg, {t} %sin.minus, {t} %sin.abs",
        f"  %cos = select {bit} %cos.neg, {t} %cos.minus, {t} %cos.abs",
        f"  %near.0 = insertvalue {{ {t}, {t} }} undef, {t} %sin, 0",
        f"  %near.1 = insertvalue {{ {t}, {t} }} %near.0, {t} %cos, 1",
        "  br i1 %any, label %slow, label %done, !prof !0",
        "slow:",
        # per lane, so that no row of a batch depends on the others
        f"  %libm = call {{ {t}, {t} }} @cosim.sincos.libm.{name}({t} %x)",
        f"  %libm.sin = extractvalue {{ {t}, {t} }} %libm, 0",
        f"  %libm.cos = extractvalue {{ {t}, {t} }} %libm, 1",
        f"  %far.sin = select {bit} %far, {t} %libm.sin, {t} %sin",
        f"  %far.cos = select {bit} %far, {t} %libm.cos, {t} %cos",
        f"  %far.0 = insertvalue {{ {t}, {t} }} undef, {t} %far.sin, 0",
        f"  %far.1 = insertvalue {{ {t}, {t} }} %far.0, {t} %far.cos, 1",
        "  br label %done",
        "done:",
        f"  %result = phi {{ {t}, {t} }} [ %far.1, %slow ], [ %near.1, %entry ]",
        f"  ret {{ {t}, {t} }} %result",
        "}",
        *_by_libm(lanes, name),
    ]
    return "\n".join(body) + "\n"


def _by_libm(lanes: int, name: str) -> list[str]:
    t = real(lanes)
    lines = [f"define internal {{ {t}, {t} }} @cosim.sincos.libm.{name}({t} %x) noinline cold nounwind {{"]
    names = {}
    for fn in ("sin", "cos"):
        lines += lane_calls(f"%{fn}", fn, ["%x"], lanes)
        names[fn] = f"%{fn}"
    lines += [
        f"  %r.0 = insertvalue {{ {t}, {t} }} undef, {t} %sin, 0",
        f"  %r.1 = insertvalue {{ {t}, {t} }} %r.0, {t} %cos, 1",
        f"  ret {{ {t}, {t} }} %r.1",
        "}",
    ]
    return lines


def lane_calls(result: str, function: str, arguments: list[str], lanes: int) -> list[str]:
    """IR that calls a C function on each lane of the arguments."""
    if lanes == 1:
        typed = ", ".join(f"double {a}" for a in arguments)
        return [f"  {result} = call double @{function}({typed})"]
    t, lines, vector = real(lanes), [], "undef"
    for lane in range(lanes):
        parts = []
        for k, argument in enumerate(arguments):
            lines.append(f"  {result}.{lane}.{k} = extractelement {t} {argument}, i32 {lane}")
            parts.append(f"double {result}.{lane}.{k}")
        lines.append(f"  {result}.{lane} = call double @{function}({', '.join(parts)})")
        name = result if lane == lanes - 1 else f"{result}.v{lane}"
        lines.append(f"  {name} = insertelement {t} {vector}, double {result}.{lane}, i32 {lane}")
        vector = name
    return lines
