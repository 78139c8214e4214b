"""Fixtures of the tests of actuators."""

from functools import partial

import pytest

from tests.kit.rigs import rig_in


@pytest.fixture
def rig_of(tmp_path):
    return partial(rig_in, tmp_path)
