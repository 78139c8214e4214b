"""Panels of the whole mechanism: for runs without a reference its energies and the reactions of its constraints, and of
its contacts forces, gaps, and states as bars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from cosim.core.units import unit_sign
from cosim.output.palette import BLUE, FAINT, GREEN, INK, OCHRE, RUST, VIOLET
from cosim.output.plot.curves import DerivedSignal, Samples, is_zero

MAX_REACTIONS = 6
MAX_CONTACTS = 4
BAR = 0.8  # height of the bar of a contact that slides; of one that sticks half of it

# signal -> name and style; energies that stay 0 are left out, except the total
TOTAL, POTENTIAL = "energy/stored", "energy/potential"
ENERGIES: dict[str, tuple[str, dict[str, Any]]] = {
    "energy/kinetic": ("kinetic", {"color": BLUE, "linewidth": 1.5}),
    POTENTIAL: ("potential", {"color": GREEN, "linewidth": 1.5}),
    "energy/elastic": ("elastic", {"color": OCHRE, "linewidth": 1.5}),
    TOTAL: ("total", {"color": INK, "linewidth": 1.2}),
    "energy/dissipated": ("dissipated", {"color": RUST, "linewidth": 1.2}),
    "energy/contacts": ("lost in contacts", {"color": RUST, "linewidth": 1.2, "linestyle": "--"}),
    "energy/work": ("work", {"color": VIOLET, "linewidth": 1.2}),
    "energy/forces": ("work of force laws", {"color": VIOLET, "linewidth": 1.2, "linestyle": "--"}),
}
# each thinner than the one before, so that coinciding curves are all visible
REACTIONS = [
    {"color": color, "linewidth": 1.8 - 0.2 * k} for k, color in enumerate((BLUE, RUST, GREEN, VIOLET, OCHRE, FAINT))
]
FORCES, MOMENTS = "N", "N*m"


class PanelCurve(NamedTuple):
    """A curve of a panel of the whole mechanism."""

    name: str
    values: Samples  # (k,)
    style: dict[str, Any]


class Panel(NamedTuple):
    """Axes in the row below the joints."""

    title: str
    unit: str
    curves: list[PanelCurve]
    note: str = ""  # for the footer
    rows: tuple[str, ...] = ()  # of bars: their names, from the one at 0 down to −1, …


def panels_of(signals: Mapping[str, np.ndarray], units: Mapping[str, str]) -> list[Panel]:
    """The panels with data; none if any joint has a reference, whose plot shows the tracking errors instead."""
    if any("/reference_" in name for name in signals):
        return []
    return [panel for panel in (_energies(signals), _reactions(signals, units)) if panel.curves]


def contact_panels(signals: Mapping[str, np.ndarray]) -> list[Panel]:
    """Normal forces, gaps and states of the contacts that pressed most."""
    found = contacts_of(signals)
    if not found:
        return []
    peaks = {name: float(np.max(signals[f"{name}/normal_force"], initial=0.0)) for name in found}
    hardest = sorted(found, key=lambda name: -peaks[name])[:MAX_CONTACTS]
    shown = [name for name in found if name in hardest]
    few = f"the {len(shown)} of {len(found)} contacts that press most" if len(shown) < len(found) else ""
    panels = []
    for title, what, unit in (("normal force", "normal_force", "N"), ("gap", "gap", "m")):
        curves = [
            PanelCurve(name, signals[f"{name}/{what}"], style)
            for name, style in zip(shown, REACTIONS, strict=False)
            if f"{name}/{what}" in signals
        ]
        panels.append(Panel(f"{title} of contacts", unit, curves, few if what == "gap" else ""))
    bars = [
        PanelCurve(name, DerivedSignal(_bar(k), signals[f"{name}/state"]), style)
        for k, (name, style) in enumerate(zip(shown, REACTIONS, strict=False))
    ]
    return [*panels, Panel("contacts: low: sticks, high: slides", "1", bars, rows=tuple(shown))]


def _bar(row: int) -> Callable[[np.ndarray], np.ndarray]:
    """From the state of a contact, its height in this row of a panel, the first one at the top."""
    return lambda state: 0.5 * BAR * state - row


def contacts_of(signals: Collection[str]) -> list[str]:
    """The contacts of a run by their signals."""
    names = [name.removesuffix("/normal_force") for name in signals if name.endswith("/normal_force")]
    return [name for name in names if f"{name}/state" in signals and f"{name}/gap" in signals]


def _energies(signals: Mapping[str, np.ndarray]) -> Panel:
    """The energies; gravity's starts at 0, because its zero is arbitrary and would hide all others."""
    known = {name: signals[name] for name in ENERGIES if name in signals}
    start = float(known[POTENTIAL][0]) if len(known.get(POTENTIAL, ())) else 0.0
    curves = []
    for signal, values in known.items():
        moved = DerivedSignal(lambda y: y - start, values) if signal in (POTENTIAL, TOTAL) else values
        if signal == TOTAL or not is_zero(moved):
            name, style = ENERGIES[signal]
            curves.append(PanelCurve(name, moved, style))
    return Panel("energy; potential: its change" if start else "energy", "J", curves)


def _reactions(signals: Mapping[str, np.ndarray], units: Mapping[str, str]) -> Panel:
    """The magnitude of the force of each constraint, or of its moment if it has no forces."""
    found = {name: _reaction_signals(name, signals, units) for name in _constraints(signals)}
    found = {name: rows for name, rows in found.items() if any(rows.values())}
    shown = dict(list(found.items())[:MAX_REACTIONS])
    measures = {name: FORCES if rows[FORCES] else MOMENTS for name, rows in shown.items()}
    mixed = len(set(measures.values())) > 1
    curves = []
    for (name, unit), style in zip(measures.items(), REACTIONS, strict=False):
        label = f"{name} [{unit_sign(unit)}]" if mixed else name
        curves.append(PanelCurve(label, DerivedSignal(_norm, *(signals[s] for s in shown[name][unit])), style))
    few = len(shown) < len(found)
    note = f"reactions of the first {len(shown)} of {len(found)} constraints" if few else ""
    return Panel("reactions", " or ".join(sorted(set(measures.values()))), curves, note)


def _constraints(signals: Mapping[str, np.ndarray]) -> list[str]:
    """Names of constraints with a violation or slip, each once; contacts slip too."""
    parts, contacts = (name.rpartition("/") for name in signals), contacts_of(signals)
    return list(dict.fromkeys(p for p, _, what in parts if what in ("violation", "slip") and p not in contacts))


def _reaction_signals(name: str, signals: Mapping[str, np.ndarray], units: Mapping[str, str]) -> dict[str, list[str]]:
    """The signals of the reaction of a constraint by unit: the resultant where there is one, of a law in Python on its
    last frame, else components or the effort on its first dof. The effort of a dof with the same name is no
    reaction."""
    of_dof = f"{name}/position" in signals
    rows = [
        s for s in signals
        if s.rpartition("/")[0] == name and (not of_dof or s.startswith((f"{name}/force_", f"{name}/moment_")))
    ]  # fmt: skip
    found = {}
    for unit, what in ((FORCES, "resultant_force"), (MOMENTS, "resultant_moment")):
        whole = [s for s in signals if s == f"{name}/{what}" or (s.startswith(f"{name}.") and s.endswith(f"/{what}"))]
        found[unit] = whole[-1:] or [s for s in rows if units.get(s) == unit]
    return found


def _norm(*parts: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # in a diverged run
        return np.sqrt(sum(part * part for part in parts))
