"""Fixtures of the tests of CiA 402 drives."""

from __future__ import annotations

import pytest

from tests.drivers.cia402.driver_bench import JOINT, Bench
from tests.drivers.cia402.emulator_bench import Rig


@pytest.fixture
def bench(monkeypatch):
    made: list[Bench] = []

    def make(*wiring, **options):
        made.append(Bench(*(wiring or (JOINT(id=1, cpr=4096),)), **options))
        return made[-1]

    return make


@pytest.fixture
def running(bench):
    def make(*wiring, mode="effort", **options):
        b = bench(*wiring, mode=mode, **options)
        b.driver.open()
        b.driver.enable(mode)
        return b

    return make


@pytest.fixture
def rig() -> Rig:
    return Rig()
