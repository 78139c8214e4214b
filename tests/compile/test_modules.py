"""Long code as several modules: compiled by other processes, the same results as one module."""

from pathlib import Path

import numpy as np
import pytest

from cosim.core.compile import BatchFunction, Routine, compilation, jit, object_code
from cosim.core.compile.compilation import Compilation
from cosim.core.compile.jit import Library
from cosim.core.errors import CompileError
from tests.compile.calls import ports

IR = Path(__file__).with_name("two_functions.ll").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("COSIM_INTERPRET", raising=False)
    return tmp_path


@pytest.fixture
def short_modules(monkeypatch):
    monkeypatch.setattr(compilation, "LONGEST_MODULE", 0)


def waves(x, y):
    """Long enough for several functions."""
    z = x
    for _ in range(1600):
        z = z * 0.999 + np.float64(0.5) * (z * z - y)
    return z, z * y


def batches_of_waves():
    arguments = ports(x=(1,), y=(1,))
    return BatchFunction.of(Routine(waves, [port.shape for port in arguments], "waves"), arguments)


def test_a_short_text_is_one_module():
    assert compilation.modules(IR) == [IR]


def test_each_module_has_what_it_needs(short_modules):
    first, second = compilation.modules(IR)
    for module in (first, second):
        assert module.count("@table = internal") == module.count("define internal double @cosim.twice") == 1
    assert "define void @inner" in first and "@outer" not in first
    assert "declare void @inner(ptr %in0, ptr %out0) nounwind" in second and "define void @outer" in second


def test_a_text_with_variables_stays_whole(short_modules):
    text = IR + "@many = global ptr null\n"
    assert compilation.modules(text) == [text]


@pytest.mark.parametrize("processors", [1, 2])
def test_results_do_not_depend_on_modules_and_processes(empty_cache, monkeypatch, processors):
    monkeypatch.setattr(compilation, "_processors", lambda: processors)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-0.1, 0.1, (2, 9, 1))
    whole = batches_of_waves()(x, y)
    monkeypatch.setattr(compilation, "LONGEST_MODULE", 4_000)
    parts = batches_of_waves()
    parts.begin()
    np.testing.assert_array_equal(parts(x, y), whole)
    assert len(list(empty_cache.iterdir())) > 3
    again = batches_of_waves()
    assert again._library.from_cache
    np.testing.assert_array_equal(again(x, y), whole)


def test_code_that_processes_cannot_make_is_made_here(short_modules, monkeypatch, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(object_code, "__file__", str(broken))
    monkeypatch.setattr(compilation, "_processors", lambda: 2)
    assert all(code.startswith(b"\x7fELF") for code in Compilation(compilation.modules(IR)).result())


def test_an_error_in_one_of_several_modules_is_raised_where_it_is_linked(short_modules, monkeypatch):
    monkeypatch.setattr(compilation, "_processors", lambda: 2)
    library = Library(IR.replace("ret double %y", "ret double %z"), ["outer"], {})
    with pytest.raises(CompileError, match="LLVM does not accept the generated code"):
        library.link()


def test_a_library_that_is_not_linked_leaves_no_process(short_modules, monkeypatch):
    monkeypatch.setattr(compilation, "_processors", lambda: 2)
    started = Compilation(compilation.modules(IR))
    (first, _) = started._workers
    process = first._process
    del started, first, _
    assert process is not None and process.returncode is not None
    assert jit.vector_lanes() in (2, 4, 8)
