"""IR that needs no C library: the same results without heap and without its copies."""

import re

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import Routine
from cosim.core.compile.freestanding import freestanding, with_signed_zeros
from cosim.core.compile.object_code import llvm, object_code, target_machine
from cosim.core.compile.stack_array import stack_need
from cosim.core.compile.targets import targets
from tests.compile.calls import entry
from tests.kit.linked_code import linked

LONG = 9000  # elements of an array that does not fit the stack of a thread


@pytest.fixture(scope="module")
def ir():
    """A function with a workspace on the heap, and copies of whole arrays."""

    def fn(x):
        a = ops.array([ops.sin(x[k % 50] * (k + 1.0)) for k in range(LONG)])
        return a, a * a

    routine = Routine(fn, [(50,)], "long")
    return entry(routine, 3)


def test_heap_and_copies_are_gone_and_the_results_are_the_same(ir):
    free = freestanding(ir)
    assert "@malloc(i64 " in ir
    assert "@malloc" not in free
    assert "@free" not in free
    assert "@cosim.copy(ptr" in free
    x, found = np.linspace(-3.0, 3.0, 50), []
    for text in (ir, free):
        results = np.zeros((2, LONG))
        linked([object_code(text, targets()["host"])], "entry")(x.ctypes.data, *(row.ctypes.data for row in results))
        found.append(results)
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0][1], found[0][0] ** 2)


def test_the_stack_of_the_deepest_chain_of_calls_counts():
    ir = """\
define void @leaf() {
  %a = alloca [100 x double], align 64
  %b = alloca <4 x double>, align 64
  ret void
}
define void @other() {
  %a = alloca [10 x i8], align 64
  ret void
}
define void @root() {
  %a = alloca [3 x <8 x double>], align 64
  call void @leaf()
  call void @other()
  call double @sin(double 0.0)
  ret void
}
"""
    assert stack_need(ir) == 192 + (832 + 64)


def test_the_workspace_is_part_of_the_stack(ir):
    assert stack_need(freestanding(ir)) > 8 * LONG


NEGATIVE = """\
define double @negative(double %a, double %b, double %c) {
  %sum = call double @llvm.fmuladd.f64(double %a, double %b, double %c)
  %negative = fneg double %sum
  ret double %negative
}
declare double @llvm.fmuladd.f64(double, double, double)
"""


def test_a_negative_keeps_the_sign_of_a_zero_on_other_processors():
    """On AArch64 −(a b + c) would be (−a) b − c in one instruction: +0 in place of −0."""

    def instructions(ir):
        machine = target_machine(targets()["aarch64"])
        return set(re.findall(r"\bf\w+(?=\s+d\d)", machine.emit_assembly(llvm().parse_assembly(ir))))

    assert instructions(NEGATIVE) == {"fnmadd"}
    assert instructions(with_signed_zeros(NEGATIVE)) == {"fmadd", "fneg"}
