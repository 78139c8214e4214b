"""Fixtures of the tests in this folder."""

from __future__ import annotations

import pytest


@pytest.fixture
def drawn(monkeypatch):
    """The figures that would be saved, laid out. The pixels of a PNG take longer than all else: they are not made."""
    from matplotlib.figure import Figure

    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, target, **settings: figures.append(figure))
    return figures
