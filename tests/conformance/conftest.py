"""Fixtures of the conformance tests."""

import pytest

from .families import Bench, Case, load_cycle


@pytest.fixture(autouse=True)
def compiled_before_it_is_timed(request: pytest.FixtureRequest) -> None:
    case = getattr(request.node, "callspec", None) and request.node.callspec.params.get("case")
    if isinstance(case, Case):
        load_cycle(case)


@pytest.fixture
def bench(case, tmp_path):
    with Bench(case, tmp_path) as made:
        yield made
