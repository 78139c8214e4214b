"""One HTML file without resources of a network: headings, tables, texts and charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape

from cosim.output.palette import FAINT, GRID, INK, SOFT
from cosim.output.svg_chart import SvgChart

STYLE = (
    f":root {{ --ink: {INK}; --soft: {SOFT}; --faint: {FAINT}; --grid: {GRID}; }}"
    + """
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p { margin: 0.4rem 0; } .note { color: var(--faint); font-size: 0.9rem; }
table { border-collapse: collapse; margin: 0.6rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: 0.22rem 0.8rem 0.22rem 0; text-align: right; border-bottom: 1px solid var(--grid); }
th { color: var(--soft); font-weight: 600; } th:first-child, td:first-child, .words { text-align: left; }
svg { max-width: 100%; height: auto; }
.charts { display: flex; flex-wrap: wrap; gap: 0.5rem; } .key { margin-right: 1.2rem; white-space: nowrap; }
summary { cursor: pointer; color: var(--soft); margin: 0.6rem 0; }
code, pre { background: #f4f6f8; padding: 0.1rem 0.3rem; }
pre { padding: 0.6rem 0.8rem; overflow-x: auto; }
"""
)


class ReportPage:
    """Parts are added from top to bottom; all texts are escaped."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>"]

    @contextmanager
    def folded(self, summary: str) -> Iterator[None]:
        """What is added within shows after a click on the summary."""
        self._parts.append(f"<details><summary>{escape(summary)}</summary>")
        yield
        self._parts.append("</details>")

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str, note: bool = False) -> None:
        kind = ' class="note"' if note else ""
        self._parts.append(f"<p{kind}>{escape(text)}</p>")

    def code(self, text: str) -> None:
        self._parts.append(f"<pre>{escape(text)}</pre>")

    def listing(self, items: Sequence[str]) -> None:
        self._parts.append(f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns of words are aligned to the left, columns of numbers to the right."""
        words = [all(not cell or cell[0].isalpha() for cell in column) for column in zip(*rows, strict=True)]

        def cells(row: Sequence[str], tag: str) -> str:
            kinds = (' class="words"' if word else "" for word in words or [False] * len(row))
            return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(row, kinds, strict=True))

        lines = [f"<tr>{cells(header, 'th')}</tr>", *(f"<tr>{cells(row, 'td')}</tr>" for row in rows)]
        self._parts.append(f"<table>{''.join(lines)}</table>")

    def charts(self, charts: Sequence[SvgChart]) -> None:
        """Beside each other, as many as the page is wide."""
        self._parts.append(f'<div class="charts">{"".join(chart.svg() for chart in charts)}</div>')

    def legend(self, colors: Mapping[str, str]) -> None:
        """Names of colours of the charts before it."""
        keys = (f'<span class="key"><b style="color:{color}">—</b> {escape(n)}</span>' for n, color in colors.items())
        self._parts.append(f'<p class="note">{"".join(keys)}</p>')

    def content(self) -> bytes:
        head = f'<meta charset="utf-8"><title>{escape(self._title)}</title><style>{STYLE}</style>'
        return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(self._parts)}</body></html>'.encode()
