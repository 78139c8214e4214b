"""The cache of object code: reuse, recompilation of damaged files, operation without a cache."""

import numpy as np
import pytest

from cosim.core.compile import compile, compile_for_batches
from tests.compile.calls import ports


def pair_code():
    return compile(lambda x, y: (x + y, x * y), ports(x=(3,), y=(3,)), "pair")


def random(*shape):
    return np.random.default_rng(0).uniform(-3.0, 3.0, shape)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "not yet" / "there"
    monkeypatch.setenv("COSIM_CACHE_DIR", str(folder))
    return folder


def test_code_is_taken_from_the_cache_the_second_time(cache):
    first, second = pair_code(), pair_code()
    assert (first.library.from_cache, second.library.from_cache) == (False, True)
    assert [path.name for path in cache.iterdir()] == [f"{first.library.key}.o"]
    np.testing.assert_array_equal(first(random(3), random(3)), second(random(3), random(3)))


def test_other_code_has_another_name(cache):
    compile(lambda x: x + 1.0, ports(x=(3,)))
    assert not compile(lambda x: x + 2.0, ports(x=(3,))).library.from_cache
    assert not compile(lambda x: x + 1.0, ports(x=(4,))).library.from_cache
    assert len(list(cache.iterdir())) == 3


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("no folder")
    monkeypatch.setenv("COSIM_CACHE_DIR", str(blocker / "cache"))
    for f in (pair_code(), pair_code()):
        assert not f.library.from_cache
        np.testing.assert_array_equal(f(np.ones(3), np.ones(3))[0], np.full(3, 2.0))
    assert list(tmp_path.iterdir()) == [blocker]


@pytest.mark.parametrize("keep", [0, 7, 500])
def test_a_spoilt_file_in_the_cache_is_made_anew(cache, keep):
    key = pair_code().library.key
    file = cache / f"{key}.o"
    good = file.read_bytes()
    file.write_bytes(good[:keep])
    f = pair_code()
    assert not f.library.from_cache
    np.testing.assert_array_equal(f(np.ones(3), np.ones(3))[0], np.full(3, 2.0))
    assert file.read_bytes() == good


def test_code_for_batches_is_made_when_the_first_comes(cache, monkeypatch):
    """Once made, the short path finds it."""
    f = pair_code()
    one, many = (random(3), random(3)), (random(5, 3), random(5, 3))
    f.native(*one, out=(np.empty(3), np.empty(3)))
    assert len(list(cache.iterdir())) == 1
    for _ in range(2):
        out = (np.empty((5, 3)), np.empty((5, 3)))
        f.native(*many, out=out)
        np.testing.assert_array_equal(out, (many[0] + many[1], many[0] * many[1]))
        assert len(list(cache.iterdir())) == 2
        monkeypatch.setattr(type(f), "_evaluate", None)  # the long path


def test_code_for_batches_alone_has_no_code_for_one_state(cache):
    """One state is then a batch of one."""
    arguments = ports(x=(3,), y=(3,))
    f = compile_for_batches(lambda x, y: (x + y, x * y), arguments, "pair")
    assert not cache.exists() or not list(cache.iterdir())
    one, many = (random(3), random(3)), (random(5, 3), random(5, 3))
    np.testing.assert_array_equal(f(*one), (one[0] + one[1], one[0] * one[1]))
    np.testing.assert_array_equal(f(*many), (many[0] + many[1], many[0] * many[1]))
    assert len(list(cache.iterdir())) == 1
