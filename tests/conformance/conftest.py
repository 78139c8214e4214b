"""Fixtures of the conformance tests."""

from __future__ import annotations

import pytest

from .families import Bench


@pytest.fixture
def bench(case, tmp_path):
    with Bench(case, tmp_path) as made:
        yield made
