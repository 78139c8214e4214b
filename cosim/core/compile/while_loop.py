"""A while loop in machine code with a data-dependent number of iterations: root finding, chains of events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cosim.core import ops
from cosim.core.compile.mathlib import constant, real
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import RoutineBase, Shape, is_recorded, origin
from cosim.core.errors import CompileError
from cosim.core.types import Numeric


def repeated_while(
    fn: Callable[..., Numeric],
    shapes: Sequence[Shape],
    name: str,
    max_count: int,
    compiled: bool,
    converges: bool = False,
) -> Callable[..., Numeric]:
    """`fn` as the body of a `WhileLoop`: (last first result, count, whether more remained); compiled, converges: see
    there; not compiled is a loop in Python."""
    if compiled:
        return WhileLoop(Routine(fn, shapes, name), max_count, converges)

    def loop(x: Numeric, *others: Numeric) -> Numeric:
        count, more = 0, True
        while more and count < max_count:
            x, more = fn(x, *others)
            count += 1
        return x, count, more

    return loop


def repeat(fn: Callable[..., Numeric], count: int, x: Numeric, *others: Numeric) -> Numeric:
    """`cosim.core.ops.repeat` on symbols. Where derivatives need expressions, the loop is unrolled."""
    arguments = (x, *others)
    if not is_recorded(arguments):
        for _ in range(count):
            x = fn(x, *others)
        return x

    def body(x: Numeric, *others: Numeric) -> tuple[Numeric, float]:
        return fn(x, *others), 1.0

    shapes = [np.shape(argument) for argument in arguments]
    loop = WhileLoop(Routine(body, shapes, getattr(fn, "__name__", "body")), count)
    return loop(*arguments)[0]


ops.loops.traced = repeat


class WhileLoop(RoutineBase):
    """x, count, more = WhileLoop(body, max_iterations)(x, *others), a routine like `Routine`.

    body: a routine of (x (n,), *others) that returns (x (n,), more ()). It runs once, and again with the returned x
    and the same others while more is not 0 (NaN counts as not 0), at most `max_iterations` times. count () is the
    number of iterations, more () the last value: not 0 if the loop was ended by `max_iterations`. converges: the loop
    is Newton's method with exact Jacobians, so that its result has the derivatives of one more iteration, which does
    not depend on x any more.

    In a batch the loop continues while any SIMD lane needs it; finished lanes keep their x, count and more.
    """

    def __init__(self, body: RoutineBase, max_iterations: int, converges: bool = False) -> None:
        """Raises CompileError if the body's results cannot be its next arguments, or `max_iterations` is below 1."""
        place = origin(body.fn)
        if not body.shapes or body.output_shapes != (body.shapes[0], ()):
            shapes = f"takes {body.shapes} and returns {body.output_shapes}"
            raise CompileError(f"'{body.name}' {shapes}; the body of a loop must return (x, more ())", place)
        if max_iterations < 1:
            raise CompileError(f"'{body.name}' has max_iterations {max_iterations}; it must be 1 or more", place)
        self.uniform = body.uniform
        if 0 in self.uniform:
            raise CompileError(
                f"'{body.name}' has one x for all SIMD lanes; the body of a loop needs one per lane", place
            )
        self.body, self.max_iterations, self.name = body, max_iterations, f"{body.name}_repeated"
        self.converges = converges
        self.shapes, self.output_shapes = body.shapes, (body.shapes[0], (), ())
        self.symbolic_parameters = body.symbolic_parameters

    @property
    def callees(self) -> list[RoutineBase]:
        return [self.body]

    @property
    def operations(self) -> int:
        """Arithmetic operations of one iteration."""
        return self.body.operations

    def fn(self, x: Numeric, *others: Numeric) -> tuple[Numeric, float, float]:
        """On numbers: the loop in Python. Raises CompileError on symbols, for which a loop has no expression."""
        if any(map(ops.is_symbolic, (x, *others))):
            what = f"'{self.name}' is a loop and has no expression, so no derivative can be taken through it"
            raise CompileError(what, origin(self.body.fn))
        count, more = 0, True
        while more != 0 and count < self.max_iterations:
            x, more = self.body.fn(x, *others)
            x, count = ops.array(x), count + 1
        return x, float(count), float(more)

    def _text(self, symbol: str, lanes: int) -> str:
        """IR of `@symbol.<lanes>`. x has its own memory, because outputs may share theirs with inputs."""
        n, t, zero, one = self.output_sizes[0], real(lanes), constant(0.0, lanes), constant(1.0, lanes)
        ins = [f"ptr %in{k}" for k in range(len(self.shapes) + (self.symbolic_parameters is not None))]
        if lanes == 1:
            bit, true, any_lane = "i1", "true", "or i1 %active.next, false"
        else:
            bit, true = f"<{lanes} x i1>", "splat (i1 true)"
            any_lane = f"call i1 @llvm.vector.reduce.or.v{lanes}i1({bit} %active.next)"
        copy, size = "call void @llvm.memcpy.p0.p0.i64", f"i64 {8 * lanes * n}, i1 false"
        return f"""
define internal void @{symbol}.{lanes}({", ".join(ins)}, ptr %out0, ptr %out1, ptr %out2) nounwind {{
entry:
  %x = alloca [{max(n, 1)} x {t}], align 64
  %x.next = alloca [{max(n, 1)} x {t}], align 64
  %said = alloca {t}, align 64
  {copy}(ptr %x, ptr %in0, {size})
  br label %again
again:
  %k = phi i64 [ 0, %entry ], [ %k.next, %again ]
  %active = phi {bit} [ {true}, %entry ], [ %active.next, %again ]
  %count = phi {t} [ {zero}, %entry ], [ %count.next, %again ]
  %more = phi {t} [ {zero}, %entry ], [ %more.next, %again ]
  call void @{self.body.symbol}.{lanes}({", ".join(["ptr %x", *ins[1:], "ptr %x.next", "ptr %said"])})
{"".join(_update_element(index, t, bit) for index in range(n))}\
  %said.value = load {t}, ptr %said, align 8
  %more.next = select {bit} %active, {t} %said.value, {t} %more
  %count.more = fadd {t} %count, {one}
  %count.next = select {bit} %active, {t} %count.more, {t} %count
  %wanted = fcmp une {t} %said.value, {zero}
  %active.next = and {bit} %active, %wanted
  %any = {any_lane}
  %k.next = add i64 %k, 1
  %left = icmp slt i64 %k.next, {self.max_iterations}
  %repeat = and i1 %any, %left
  br i1 %repeat, label %again, label %finish
finish:
  {copy}(ptr %out0, ptr %x, {size})
  store {t} %count.next, ptr %out1, align 8
  store {t} %more.next, ptr %out2, align 8
  ret void
}}
"""


def _update_element(index: int, t: str, bit: str) -> str:
    """IR that updates element `index` of x in the lanes that are not finished."""
    return f"""\
  %old.at{index} = getelementptr inbounds {t}, ptr %x, i64 {index}
  %new.at{index} = getelementptr inbounds {t}, ptr %x.next, i64 {index}
  %old{index} = load {t}, ptr %old.at{index}, align 8
  %new{index} = load {t}, ptr %new.at{index}, align 8
  %kept{index} = select {bit} %active, {t} %new{index}, {t} %old{index}
  store {t} %kept{index}, ptr %old.at{index}, align 8
"""
