"""Where machine code of functions on memory is kept."""

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher

from cosim.core import machine_code
from cosim.plugins import drivers
from cosim.plugins.drivers.common import cycle


@pytest.fixture
def rooms(tmp_path, monkeypatch):
    """Sources with one file."""
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path / "cache"))
    room = tmp_path / "room"
    room.mkdir()
    (room / "a.py").write_text("a = 1")
    monkeypatch.setattr(machine_code, "_ROOMS", (room,))
    return room


def test_code_is_compiled_again_when_any_source_has_changed(rooms):
    before = machine_code._cache()
    assert machine_code._cache() == before
    (rooms / "b.py").write_text("b = 1")
    after = machine_code._cache()
    assert after != before
    os.utime(rooms / "a.py", (1.0, 1.0))
    assert machine_code._cache() not in (before, after)


def test_code_of_sources_that_are_gone_is_removed(rooms):
    folder = machine_code._cache().parent
    for name, age in (("old", 40), ("recent", 20)):
        (folder / name).mkdir(parents=True)
        when = os.stat(folder / name).st_mtime - age * 86400.0
        os.utime(folder / name, (when, when))
    machine_code._cache()
    assert [path.name for path in folder.iterdir()] == ["recent"]


def compiled_functions():
    """Those that Numba keeps, of all modules of drivers, also in tables of a module."""
    for module in pkgutil.walk_packages(drivers.__path__, "cosim.plugins.drivers."):
        for name, value in vars(importlib.import_module(module.name)).items():
            for function in value.values() if isinstance(value, dict) else [value]:
                if isinstance(function, (CFunc, Dispatcher)) and not isinstance(function._cache, NullCache):
                    yield f"{module.name}.{name}", getattr(function, "py_func", None) or function._pyfunc


def test_no_process_compiles_anew_what_closes_over_compiled_functions():
    """Numba finds what it has kept by what a function closes over; compiled functions are others in each process."""
    found = dict(compiled_functions())
    assert len(found) > 50
    closures = {name for name, function in found.items() if function.__closure__}
    assert not closures, "write them with entry_of"


def test_a_plain_function_is_compiled_with_those_that_it_calls_by_name():
    code = machine_code.code_of(cycle.effort_of_motor)
    assert code.py_func.__code__ is cycle.effort_of_motor.__code__ and code is machine_code.code_of(
        cycle.effort_of_motor
    )
    assert code.py_func.__globals__["clipped"] is machine_code.code_of(cycle.clipped)
    assert inspect.isfunction(cycle.clipped) and cycle.effort_of_motor.__globals__["clipped"] is cycle.clipped
    command = np.zeros(cycle.COMMAND_SIZE)
    command[[cycle.SCALE, cycle.LIMIT]] = -2.0, 3.0
    assert code(command, 9.0) == cycle.effort_of_motor(command.tolist(), 9.0) == -1.5


def test_the_next_process_finds_the_code_of_a_plain_function(tmp_path):
    program = """
import numpy as np
from cosim.core.machine_code import code_of
from cosim.plugins.drivers.common.cycle import COMMAND_SIZE, effort_of_motor
code = code_of(effort_of_motor)
code(np.ones(COMMAND_SIZE), 0.5)
print(sum(code.stats.cache_hits.values()))
"""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    hits = [
        subprocess.check_output([sys.executable, "-c", program], env=environment | {"COSIM_CACHE_DIR": str(tmp_path)})
        for _ in range(2)
    ]
    assert [int(each) for each in hits] == [0, 1]
