"""The functions of a cycle, which every family writes once, give the same bits in Python and as machine code, whatever
the numbers are; and no family needs the compiler for them."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cosim.core.machine_code import code_of
from cosim.plugins.drivers.common.cycle import (
    COMMAND_SIZE,
    LIMIT,
    MEASURED_NS,
    SCALE,
    STATE_SIZE,
    Reception,
)
from cosim.plugins.drivers.common.frame_layout import FieldForm, count_numbers

from .families import cases, folders, unwired

DECLARED = [case for case in cases() if case.compiled]
TIMES = 400
NUMBERS = (0.0, -0.0, 5e-324, -2.3e-308, 1e-40, 1.0, -1.0, 0.5, 1e15, -9e29, np.inf, -np.inf, np.nan)


def wild(generator: np.random.Generator, size: int) -> np.ndarray:
    """Numbers of all sizes, a fifth of them from NUMBERS."""
    numbers = generator.normal(size=size) * 10.0 ** generator.uniform(-6, 6, size)
    return np.where(generator.random(size) < 0.2, generator.choice(NUMBERS, size), numbers)


def settings(generator: np.random.Generator, own: list[float]) -> list[float]:
    """As those of a driver that is not open yet."""
    return [value * generator.uniform(0.5, 2.0) or float(abs(generator.normal())) for value in own]


def command(generator: np.random.Generator) -> list[float]:
    numbers = wild(generator, COMMAND_SIZE)
    numbers[SCALE] = generator.choice([-3.0, 0.2, 1.0, 50.0])
    numbers[LIMIT] = generator.choice([0.0, 1e-3, 2.0, np.inf])
    numbers[MEASURED_NS] = float(generator.integers(1, 10**13))
    return numbers.tolist()


def number(generator: np.random.Generator, form: FieldForm) -> float:
    """That a field can hold."""
    if form.real:
        with np.errstate(over="ignore"):
            return float(np.float32(wild(generator, 1)[0]))
    low, high = (-(1 << form.bits - 1), (1 << form.bits - 1) - 1) if form.signed else (0, (1 << form.bits) - 1)
    return int(generator.choice([low, 0, 1, high, generator.integers(low, high, endpoint=True)]))


def received(generator: np.random.Generator, reception: Reception) -> list[float]:
    numbers = list(reception.numbers)
    for frame in reception.frames:
        for field in frame.fields:
            numbers[field.number] = number(generator, field.kind.form)
    return numbers


def functions(driver: Any) -> Iterator[tuple[str, Callable[..., None], int]]:
    """(name, function, numbers of its result)."""
    reception = driver.interpreted.reception
    yield "state", reception.state, STATE_SIZE
    if reception.whole is not None:
        yield "whole", reception.whole, 1
    for mode in sorted(driver.modes):
        transmission = driver._transmission(mode)
        yield mode, transmission.command, count_numbers(transmission.frames) + 1


@pytest.mark.parametrize("case", DECLARED, ids=str)
def test_functions_give_the_same_bits_in_python_and_as_machine_code(case):
    driver, generator = unwired(case), np.random.default_rng(1)
    for name, function, size in functions(driver):
        machine = code_of(function)
        for _ in range(TIMES):
            own, asked = settings(generator, driver.interpreted.settings[0]), command(generator)
            numbers = received(generator, driver.interpreted.reception)
            kept, result = list(own), [0.0] * size
            function(kept, asked, numbers, result)
            arrays = [np.array(each, float) for each in (own, asked, numbers, [0.0] * size)]
            machine(*arrays)
            for python, compiled in ((kept, arrays[0]), (result, arrays[3])):
                assert bits(np.array(python, float)) == bits(compiled), (name, own, asked, numbers)


def bits(numbers: np.ndarray) -> bytes:
    """With one NaN: which of them comes does not matter."""
    return np.where(np.isnan(numbers), np.nan, numbers).tobytes()


def test_no_family_needs_the_compiler_before_its_cycle_is_to_be_compiled():
    modules = [f"cosim.plugins.drivers.{name}" for name in folders()]
    program = f"""
import importlib, sys
sys.modules["numba"] = None
for name in {modules!r}:
    importlib.import_module(name)
assert "cosim.core.machine_code" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
