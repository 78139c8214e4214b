"""Fixtures of the tests in this folder."""

from __future__ import annotations

import pytest


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved. The pixels of a PNG take longer than all else: they are not made."""
    from matplotlib.figure import Figure

    figures = []
    save = Figure.savefig

    def saved(figure, target, *, format, **settings):
        if format != "png":
            save(figure, target, format=format, **settings)
        figure.draw_without_rendering()  # extents are at the figure's own resolution again
        figures.append(figure)

    monkeypatch.setattr(Figure, "savefig", saved)
    return figures
