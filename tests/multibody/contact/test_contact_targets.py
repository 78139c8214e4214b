"""The solver of contacts for other programs and processors: without heap, as WebAssembly and as PTX."""

import itertools

import numpy as np
import pytest
import wasmtime

from cosim.apps.deploy.wasm_rig import module_of
from cosim.core.compile.compilation import compiled_here
from cosim.core.compile.freestanding import freestanding
from cosim.core.compile.object_code import object_code
from cosim.core.compile.ptx import Kernel, ptx
from cosim.core.compile.stack_array import stack_need
from cosim.core.compile.targets import PTX, targets
from cosim.mechanics.multibody.contact.contact_solver import ContactSolver
from tests.compile.calls import entry
from tests.compile.test_ptx import ROOM_FOR_CALLS
from tests.kit.linked_code import linked
from tests.kit.object_file import assert_freestanding
from tests.kit.ptx_on_cpu import PtxProgram, addresses
from tests.kit.ptxas import assemble
from tests.multibody.contact.contact_problems import compiled, of_robot, regular

CONTACTS, MOST = 4, 60
SOLVER = ContactSolver(CONTACTS, MOST)
PROBLEMS = [*of_robot("solo12")[::25], *regular(CONTACTS, np.random.default_rng(1), 6)]
SIZES = [np.size(array) for array in PROBLEMS[0].arrays]
RESULTS = [3 * CONTACTS, 1, 1, 1]
# products and sums are fused or not; what that changes is within the tolerance of the solver
TOLERANCE = 1e-9
EACH = Kernel("each", ("inputs", "results"), ("count",))


@pytest.fixture(scope="module")
def code():
    return freestanding(entry(SOLVER, len(SIZES) + len(RESULTS)))


@pytest.fixture(scope="module")
def expected():
    solve = compiled(CONTACTS, MOST)
    return np.array([np.concatenate([np.ravel(x) for x in solve(*problem.arrays)]) for problem in PROBLEMS])


def packed(problem):
    return np.concatenate([np.ravel(array) for array in problem.arrays])


def places(sizes, first=0):
    return [first + place for place in itertools.accumulate([0, *sizes[:-1]])]


def not_called(_):
    """The solver has no function of the C library, sines are in every code."""
    raise AssertionError


def same(found, expected):
    n = RESULTS[0]
    np.testing.assert_allclose(found[:, :n], expected[:, :n], atol=TOLERANCE)
    assert (found[:, -1] == 1.0).all() and (np.abs(found[:, n] - expected[:, n]) <= 1.0).all()


def test_without_heap_it_has_the_same_bits(code, expected):
    built = object_code(code, targets()["host"])
    assert_freestanding(built)
    run, found = linked([built], "entry"), np.zeros_like(expected)
    for problem, row in zip(PROBLEMS, found, strict=True):
        given = packed(problem)
        run(
            *(given.ctypes.data + 8 * at for at in places(SIZES)), *(row.ctypes.data + 8 * at for at in places(RESULTS))
        )
    np.testing.assert_array_equal(found, expected)


def test_other_processors_get_objects(code):
    for name in ("aarch64", "riscv64"):
        assert_freestanding(compiled_here(code, targets()[name]))


def test_as_webassembly(code, expected):
    built = module_of(compiled_here(code, targets()["wasm"]), ["entry"], stack_need(code))
    store = wasmtime.Store()
    module = wasmtime.Module(store.engine, built.code)
    imports = [wasmtime.Func(store, each.type, not_called) for each in module.imports]
    exports = wasmtime.Instance(store, module, imports).exports(store)
    memory, begin, found = exports["memory"], exports["__heap_base"].value(store), []
    memory.grow(store, 1)
    for problem in PROBLEMS:
        memory.write(store, packed(problem).tobytes(), begin)
        exports["entry"](store, *(begin + 8 * at for at in places(SIZES + RESULTS)))
        start = begin + 8 * sum(SIZES)
        found.append(np.frombuffer(bytes(memory.read(store, start, start + 8 * sum(RESULTS)))))
    same(np.array(found), expected)


def test_as_ptx(code, expected, tmp_path):
    """A thread for each problem; the assembler of CUDA takes it, with the registers and the stack of a thread."""
    lines = []
    for base, sizes in (("inputs", SIZES), ("results", RESULTS)):
        lines.append(f"  %{base}.first = mul i64 %run, {sum(sizes)}")
        for k, at in enumerate(places(sizes)):
            lines.append(f"  %{base}.at{k} = add i64 %{base}.first, {at}")
            lines.append(f"  %{base}{k} = getelementptr inbounds double, ptr %{base}, i64 %{base}.at{k}")
    given = ", ".join(
        f"ptr %{base}{k}" for base, sizes in (("inputs", SIZES), ("results", RESULTS)) for k in range(len(sizes))
    )
    body = "\n".join([EACH.head, *lines, f"  call void @entry({given})", "  ret void", "}"])
    text = ptx("\n".join([code.replace("define void @entry", "define internal void @entry"), body, ""]), [EACH])
    inputs, found = np.array([packed(problem) for problem in PROBLEMS]), np.zeros_like(expected)
    values = np.array([inputs.ctypes.data, found.ctypes.data, len(PROBLEMS)], dtype=np.int64)
    PtxProgram(text).launch(EACH.name)(len(PROBLEMS) // 4 + 1, 4, addresses(values))
    same(found, expected)
    assembled = assemble(text, targets()[PTX].cpu, tmp_path)
    assert assembled.registers <= 255 and assembled.stack <= 1.5 * stack_need(code) + ROOM_FOR_CALLS


def test_a_bound_for_a_tick_needs_little_memory():
    """Without passes of ADMM: one matrix of the size of W, and some vectors."""
    n = 3 * 16
    need = [stack_need(freestanding(entry(ContactSolver(16, most), 8))) for most in (8, 500)]
    assert need[0] <= 8 * n * (n + 20) < need[1] <= 2 * need[0]
