"""Fixtures of the tests of ODrives."""

import pytest

from tests.drivers.odrive.driver_bench import Setup


@pytest.fixture(params=["bus", "port"])
def kind(request):
    return request.param


@pytest.fixture
def setup(monkeypatch, kind):
    return lambda *args, **keys: Setup(monkeypatch, kind, *args, **keys)
