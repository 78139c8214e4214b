"""What a page states about the state of its run, in plain words."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from cosim.apps.dashboard.health import Figure
from cosim.apps.dashboard.run_control import Note
from cosim.apps.dashboard.source import PageEvent, Status
from cosim.output.events import without_quantities

OLD_DATA_AGE = 1.5  # s without a message, after which data of a run are old
MOST_EVENTS = 60
COLORS = {"good": "#2f9e62", "busy": "#3b82c4", "warning": "#c98a1b", "bad": "#d1453b", "idle": "#868e96"}
MARKS = {"info": COLORS["busy"], "warning": COLORS["warning"], "error": COLORS["bad"]}
# the slider of a gain stands on a logarithmic axis: the numbers beside it and above it would be exponents
GAIN_STYLE = (
    "<style>.mantine-Slider-root + .mantine-NumberInput-root, .mantine-Slider-label {display: none !important}</style>"
)

# state -> word, colour
STATES: dict[str, tuple[str, str]] = {
    "replay": ("Replay", "busy"),
    "connecting": ("Connecting", "warning"),
    "starting": ("Starting", "warning"),
    "waiting": ("Ready to start", "idle"),
    "armed": ("Motors armed", "warning"),
    "running": ("Running", "good"),
    "paused": ("Paused", "busy"),
    "stopping": ("Stopping", "warning"),
    "ended": ("Ended", "idle"),
    "failed": ("Failed", "bad"),
    "gone": ("The run is gone", "bad"),
}


class Headline(NamedTuple):
    """The state of a run in a few words, with a line of detail."""

    text: str
    detail: str
    color: str


def headline(status: Status, name: str, t: float | None) -> Headline:
    """Of the run `name` at t [s]."""
    word, color = STATES.get(status.state, (status.state, "idle"))
    digits = 3 if status.state == "paused" else 2  # a step is seen
    at = "" if t is None else f"t = {t:.{digits}f} s"
    if status.state in ("running", "paused") and status.age > OLD_DATA_AGE:
        return Headline("Data are old", f"{name}: nothing came for {status.age:.0f} s; shown is {at}", COLORS["bad"])
    detail = " · ".join(filter(None, [name, at, status.reason]))
    return Headline(word, detail, COLORS[color])


def control_html(line: str, note: Note, moves: Sequence[str]) -> str:
    """line: who has control; note: how the last command went; moves: what the motors will move."""
    parts = [f'<div style="opacity:.75">{html.escape(line)}</div>']
    if note.text:
        parts.append(_colored(note.text, note.level))
    if moves:
        lines = "<br>".join(html.escape(text) for text in moves)
        style = (
            f"border-left:3px solid {COLORS['warning']};padding:.2em .6em;margin:.4em 0;max-height:16em;overflow:auto"
        )
        parts.append(f'<div data-moves style="{style}">{lines}</div>')
    return f'<div data-control style="font-size:.85em;padding:0 .9em .6em">{"".join(parts)}</div>'


def note_html(text: str, level: str) -> str:
    return (
        f'<div data-note style="font-size:.85em;padding:.2em .9em;word-break:break-all">{_colored(text, level)}</div>'
    )


def _colored(text: str, level: str) -> str:
    return f'<div style="color:{MARKS[level]};font-weight:600">{html.escape(text)}</div>'


def headline_html(shown: Headline) -> str:
    return (
        f'<div style="padding:.6em .9em;border-radius:6px;color:white;background:{shown.color};margin:0 .5em .9em">'
        f'<div style="font-weight:700;font-size:1.1em" data-status="{html.escape(shown.text)}">'
        f"{html.escape(shown.text)}</div>"
        f'<div style="font-size:.85em;opacity:.92">{html.escape(shown.detail)}</div></div>'
    )


class Gathered(NamedTuple):
    """The newest of events in a row that differ in their numbers alone; number, first [s]: of all of them."""

    event: PageEvent
    number: int
    first: float


def gathered(events: Sequence[PageEvent]) -> list[Gathered]:
    """Events in a row that state the same, such as missed deadlines, as one; the newest first, MOST_EVENTS at most."""
    groups: list[Gathered] = []
    last = None
    for event in reversed(events):
        kind = event.level, without_quantities(event.text)
        if kind == last:
            groups[-1] = Gathered(groups[-1].event, groups[-1].number + 1, event.t)
        elif len(groups) == MOST_EVENTS:
            break
        else:
            groups.append(Gathered(event, 1, event.t))
            last = kind
    return groups


def _event_text(group: Gathered) -> str:
    more = "" if group.number == 1 else f" · {group.number - 1} more like it since {group.first:.3f} s"
    return html.escape(group.event.text) + more


def events_html(events: Sequence[PageEvent]) -> str:
    """The last events, the newest first."""
    if not events:
        return '<div style="opacity:.6;padding:.5em .9em">No events yet.</div>'
    pad = "padding:.15em .6em"
    rows = [
        f'<tr><td style="white-space:nowrap;text-align:right;opacity:.7;{pad}">{group.event.t:.3f} s</td>'
        f'<td style="border-left:3px solid {MARKS[group.event.level]};{pad}">{_event_text(group)}</td></tr>'
        for group in gathered(events)
    ]
    return f'<table style="font-size:.85em;border-collapse:collapse;margin:.4em">{"".join(rows)}</table>'


def figures_html(figures: Sequence[Figure]) -> str:
    if not figures:
        return '<div style="opacity:.6;padding:.5em .9em">This run has no such figures.</div>'
    rows, group = [], ""
    for figure in figures:
        if figure.group != group:
            group = figure.group
            note = ' <span style="font-weight:400;opacity:.6">median · p99 · max</span>' if group == "timing" else ""
            rows.append(f'<tr><td colspan="2" style="padding:.5em .6em .1em;font-weight:600">{group}{note}</td></tr>')
        style = f"color:{COLORS['bad']};font-weight:600;" if figure.warning else ""
        rows.append(
            f'<tr><td style="padding:.1em .6em;opacity:.8">{html.escape(figure.name)}</td>'
            f'<td style="{style}padding:.1em .6em;text-align:right;white-space:nowrap;'
            f'font-variant-numeric:tabular-nums">{html.escape(figure.value)}</td></tr>'
        )
    return f'<table style="font-size:.85em;border-collapse:collapse;margin:.2em .4em;width:95%">{"".join(rows)}</table>'
