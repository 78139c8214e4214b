"""A machine that has the fonts of matplotlib alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cosim.output.plot import style


@pytest.fixture(autouse=True)
def only_fonts_of_matplotlib(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For each test of a module that imports this."""
    monkeypatch.setattr(style, "OTHER_FONTS", ())
    style.families.cache_clear()
    yield
    style.families.cache_clear()
