"""Which curves of a joint belong in one chart, and how each is drawn: the one source of all that draws signals.

Charts come from the declarations of the signals. A recording has names and units alone, and the words of joints are
looked up in the table of what rigs record; what is not there has a chart of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from cosim.core.types import Role, Signal
from cosim.core.units import unit_sign
from cosim.output.palette import BLUE, DARK, GREEN, GREY, OCHRE, PALETTE, ROSE, RUST, TEAL, VIOLET
from cosim.simulation.tick.signals import JOINT_SIGNALS

T = TypeVar("T")

POSITION, TRACKING_ERROR, VELOCITY, ACCELERATION, EFFORT = ORDER = (
    "position", "tracking error", "velocity", "acceleration", "effort",
)  # fmt: skip
DIFFERENCE = "reference_position", "position"  # the tracking error where none was measured
NO_DECLARATIONS: Mapping[str, Signal] = {}


class CurveStyle(NamedTuple):
    """How the curves of a role are drawn and named. width: of the line, in points or pixels."""

    label: str
    color: str
    dashed: bool = False
    width: float = 1.2


# from the back to the front: what was measured does not hide the actual value, and dashes show it in their gaps
STYLES: Mapping[Role, CurveStyle] = {
    "measured": CurveStyle("measured", GREEN, width=1.0),
    "estimate": CurveStyle("estimated", TEAL),
    "holding": CurveStyle("brake, latch or stop", ROSE),
    "load": CurveStyle("load motor", GREY),
    "": CurveStyle("actual", BLUE, width=1.8),
    "command": CurveStyle("commanded", OCHRE, dashed=True),
    "reference": CurveStyle("reference", RUST, dashed=True),
    "error": CurveStyle("reference − actual", VIOLET, width=1.5),
}
FRONT = {role: k for k, role in enumerate(STYLES)}


class SignalCurve(NamedTuple):
    """A curve of a chart, with its label and style. signals: the one that it shows, or the two whose difference it
    shows."""

    signals: tuple[str, ...]
    label: str
    color: str
    dashed: bool = False
    width: float = 1.5

    @property
    def dark(self) -> str:
        """Its colour on a dark ground."""
        return DARK[self.color]

    def of(self, values: Callable[[str], T], minus: Callable[[T, T], T]) -> T:
        """Its values, from those of a signal and the difference of two."""
        first, *rest = map(values, self.signals)
        return minus(first, rest[0]) if rest else first


class SignalChart(NamedTuple):
    """Curves of one quantity that are shown over each other. owner: of the signals, such as a joint; unit: as it is
    shown; curves: from the back to the front."""

    owner: str
    title: str
    unit: str
    curves: tuple[SignalCurve, ...]


class _Member(NamedTuple):
    """A signal of a chart; word: its name without the owner; alone: in a chart of its own."""

    name: str
    word: str
    role: Role
    alone: bool


def charts_of(
    units: Mapping[str, str], declared: Mapping[str, Signal] = NO_DECLARATIONS
) -> dict[str, dict[str, SignalChart]]:
    """Owner -> title -> chart, of each in a fixed order: those of ORDER, then the others as they were recorded. Each
    signal is in one chart; the difference in place of a tracking error that was not measured is a curve besides.

    units: of the signals by name; declared: their declarations, as far as they are known."""
    found: dict[str, dict[str, list[_Member]]] = {}
    for name, unit in units.items():
        owner, _, word = name.rpartition("/")
        signal = declared.get(name) or JOINT_SIGNALS.get(word) or Signal((), unit)
        charts = found.setdefault(owner, {})
        members = charts.get(signal.chart, [])
        alone = not signal.chart or any(units[member.name] != unit for member in members)
        charts.setdefault(word if alone else signal.chart, []).append(_Member(name, word, signal.role, alone))
    return {owner: _ordered(owner, charts, units) for owner, charts in found.items()}


def _ordered(owner: str, members: Mapping[str, Sequence[_Member]], units: Mapping[str, str]) -> dict[str, SignalChart]:
    charts = {
        title: SignalChart(owner, title, unit_sign(units[own[0].name]), _curves(own)) for title, own in members.items()
    }
    reference, position = (f"{owner}/{word}" for word in DIFFERENCE)
    if TRACKING_ERROR not in charts and reference in units and position in units:
        curve = SignalCurve((reference, position), *STYLES["error"])
        charts[TRACKING_ERROR] = SignalChart(owner, TRACKING_ERROR, unit_sign(units[position]), (curve,))
    return {title: charts[title] for title in (*ORDER, *charts) if title in charts}


def _curves(members: Sequence[_Member]) -> tuple[SignalCurve, ...]:
    """The first of a role is drawn as its role; a further one has its name, and a colour that is free."""
    curves, roles = list[SignalCurve](), set[Role]()
    free = [color for color in PALETTE if color not in {STYLES[member.role].color for member in members}]
    for name, word, role, alone in sorted(members, key=lambda m: (FRONT[m.role], m.word not in JOINT_SIGNALS)):
        style = STYLES[role]
        if alone:
            style = style._replace(label=word)
        elif role in roles:
            style = style._replace(label=word.replace("_", " "), color=free.pop(0) if free else style.color)
        roles.add(role)
        curves.append(SignalCurve((name,), *style))
    return tuple(curves)


def curves_beside(signals: Sequence[str], label: Callable[[str], str] = str) -> tuple[SignalCurve, ...]:
    """Curves of any signals, each in its colour; label: of a signal, by default its name."""
    return tuple(SignalCurve((name,), label(name), PALETTE[k % len(PALETTE)]) for k, name in enumerate(signals))
