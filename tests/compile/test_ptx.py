"""PTX: what CUDA's assembler accepts, and what it computes, run as machine code of this processor."""

import math

import mpmath
import numpy as np
import pytest

from cosim import load_rig
from cosim.core import ops
from cosim.core.compile import compile, emit, mathlib, ptx
from cosim.core.compile.freestanding import freestanding
from cosim.core.compile.operations import LIBM, OF_TWO
from cosim.core.compile.ptx import LOCAL_BYTES, Kernel
from cosim.core.compile.stack_array import large_on_heap, stack_array, stack_need
from cosim.core.compile.targets import PTX, targets
from cosim.core.errors import CompileError
from cosim.simulation.loop.gpu_loop import KERNEL
from tests.compile.calls import ports
from tests.kit.ptx_on_cpu import PtxProgram, addresses
from tests.kit.ptxas import assemble
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER

EACH = Kernel("each", ("inputs", "results"), ("count",))
NAMES = sorted({*LIBM.values(), "sin", "cos"})


def run(text, inputs, results):
    """The kernel EACH on the CPU: blocks of 4 threads, one more than needed."""
    count = len(inputs)
    values = np.array([inputs.ctypes.data, results.ctypes.data, count], dtype=np.int64)
    PtxProgram(text).launch(EACH.name)(count // 4 + 2, 4, addresses(values))
    return results


def ir_of(*lines, before=""):
    parts = [emit.declarations({1}), mathlib.sincos(1), before, EACH.head, *lines, "  ret void", "}"]
    return freestanding(large_on_heap("\n".join(parts) + "\n"))


def element(name, base, kind="double", index="%run"):
    return f"  {name} = getelementptr inbounds {kind}, ptr {base}, i64 {index}"


# --- what the assembler accepts ---------------------------------------------------------------------

# registers of all calls are on the stack of a thread beside its arrays
ROOM_FOR_CALLS = 8_000


SM_75 = ["crane", "mechanisms/four_bar", "mechanisms/release", "elastic/cantilever", "drives/servo_axis"]
LATER = [("two_link", "sm_80"), ("two_link", "sm_90"), ("two_link", "sm_120")]


@pytest.mark.parametrize(("name", "cpu"), [*((name, "sm_75") for name in (*SM_75, "cosimulation/winch")), *LATER])
def test_the_assembler_takes_the_ticks_of_sample_rigs(name, cpu, tmp_path):
    loop = load_rig(FOLDER / f"{name}.yaml").tick_model.gpu_loop(None, ())
    text = ptx.ptx(loop.code, [KERNEL], targets()[PTX]._replace(cpu=cpu))
    found = assemble(text, cpu, tmp_path)
    assert found.registers <= 255 and found.stack <= 1.5 * stack_need(loop.code) + ROOM_FOR_CALLS, found
    # rounded operations: the assembler must not fuse a product with a sum
    assert "add.rn.f64" in text and not [each for each in ("add.f64", "mul.f64", "sub.f64") if each in text]


# --- what it computes -------------------------------------------------------------------------------


def test_a_thread_without_work_does_nothing():
    lines = [element("%at", "%results"), "  store double 7.0, ptr %at, align 8"]
    results = run(ptx.ptx(ir_of(*lines), [EACH]), np.zeros(6), np.zeros(16))
    assert results.tolist() == [7.0] * 6 + [0.0] * 10


def test_sine_and_cosine_have_the_bits_of_the_engine():
    lines = [
        element("%at", "%inputs"), "  %x = load double, ptr %at, align 8",
        "  %both = call { double, double } @cosim.sincos.1(double %x)",
        "  %sin = extractvalue { double, double } %both, 0", "  %cos = extractvalue { double, double } %both, 1",
        "  %twice = mul i64 %run, 2", element("%first", "%results", index="%twice"), "  store double %sin, ptr %first",
        element("%second", "%first", index="1"), "  store double %cos, ptr %second",
    ]  # fmt: skip
    rng = np.random.default_rng(1)
    inputs = np.concatenate([rng.uniform(-10.0, 10.0, 50), rng.uniform(-1e6, 1e6, 50)])
    found = run(ptx.ptx(ir_of(*lines), [EACH]), inputs, np.zeros(200)).reshape(-1, 2)
    engine = compile(lambda x: (ops.sin(x), ops.cos(x)), ports(x=()))
    np.testing.assert_array_equal(found.T, engine(inputs))
    # beyond the range of the reduction the library of the GPU finds the quadrant
    far = np.array([2e6, -1e15, 1e300, 5e22, math.inf, math.nan])
    found = run(ptx.ptx(ir_of(*lines), [EACH]), far, np.zeros(12)).reshape(-1, 2)
    np.testing.assert_allclose(found[:4], [[math.sin(x), math.cos(x)] for x in far[:4]], rtol=4e-16)
    assert np.isnan(found[4:]).all()


RANGES = {"acosh": (1.0, 9.0), "log": (1e-3, 9.0), "log1p": (-0.9, 9.0), "asin": (-1.0, 1.0), "acos": (-1.0, 1.0)}
RANGES |= {"atanh": (-0.99, 0.99), "pow": (0.01, 5.0)}
EXACT = {"fmod": math.fmod, "remainder": math.remainder}


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_the_c_library(name):
    """Arguments in their order; errors in units of the last place, far below another function's."""
    two = name in OF_TWO
    lines = [
        "  %twice = mul i64 %run, 2", element("%at", "%inputs", index="%twice"), element("%next", "%at", index="1"),
        "  %a = load double, ptr %at, align 8", "  %b = load double, ptr %next, align 8",
        f"  %r = call double @{name}(double %a{', double %b' if two else ''})",
        element("%to", "%results"), "  store double %r, ptr %to, align 8",
    ]  # fmt: skip
    inputs = np.random.default_rng(2).uniform(*RANGES.get(name, (-4.0, 4.0)), (40, 2))
    found = run(ptx.ptx(ir_of(*lines), [EACH]), inputs, np.zeros(40))
    for value, (a, b) in zip(found, inputs.tolist(), strict=True):
        arguments = (a, b) if two else (a,)
        if name in EXACT:
            assert value == EXACT[name](*arguments)
            continue
        with mpmath.workdps(30):
            exact = getattr(mpmath, {"pow": "power"}.get(name, name))(*map(mpmath.mpf, arguments))
            assert abs(value - exact) <= 3 * np.spacing(abs(float(exact))), (arguments, value)


def test_arrays_that_would_be_on_the_heap_are_in_the_memory_of_the_thread():
    lines = [
        stack_array("%space", 102_400), element("%at", "%inputs"), "  %x = load double, ptr %at, align 8",
        "  %index = fptosi double %x to i64", element("%there", "%space", index="%index"),
        "  store double %x, ptr %there, align 8", "  %same = add i64 %run, 12000",
        element("%here", "%space", index="%same"), "  %y = load double, ptr %here, align 8",
        element("%to", "%results"), "  store double %y, ptr %to, align 8",
    ]  # fmt: skip
    text = ptx.ptx(ir_of(*lines), [EACH])
    assert "malloc" not in text and "__local_depot0[102400]" in text
    inputs = 12000.0 + np.arange(9)
    np.testing.assert_array_equal(run(text, inputs, np.zeros(9)), inputs)


# --- what is refused --------------------------------------------------------------------------------


def test_more_memory_than_a_thread_has(said):
    inner = "define internal void @inner.1(ptr %a) nounwind {\n  %b = alloca [40000 x double]\n  ret void\n}\n"
    first = stack_array("%space", 300_000)
    said(raised(CompileError, ptx.ptx, ir_of(first, "  call void @inner.1(ptr %space)", before=inner), [EACH]))
    assert LOCAL_BYTES == 512 * 1024


def test_without_the_mathematics_of_gpus(monkeypatch, said):
    monkeypatch.setattr(ptx, "LIBDEVICE", "nowhere/libdevice.10.bc")
    ptx.libdevice.cache_clear()
    lines = ["  %y = call double @exp(double 1.0)", element("%to", "%results"), "  store double %y, ptr %to, align 8"]
    try:
        with pytest.raises(CompileError) as caught:
            ptx.ptx(ir_of(*lines), [EACH])
    finally:
        ptx.libdevice.cache_clear()
    said(caught.value)
