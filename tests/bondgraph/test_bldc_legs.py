"""The brushless DC machine on its inverter against three windings with ideal legs: switches that commutate at once, and
diodes that conduct without a drop until their current is 0.

The component differs from them in an open leg alone, which has OPEN times the resistance of a phase, and in the drop of
its switches where three legs conduct, which is the drop of two along the vector of the currents.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.mechanics.bondgraph.components import _bridge, bldc
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, Inverter
from tests.bondgraph.simulation import Simulation, bench
from tests.bondgraph.test_bldc import K, L, P, R, trapezoid

RAIL, VOLTAGE, SPEED = 24.0, 11.0, 200.0  # V, V, rad/s: 6 V are induced in a phase
SECTOR = math.pi / 3.0
TIME = SECTOR / (P * SPEED)  # s, of a sector
COUNT = 7
# of each sector after a commutation: leg at +u, leg at −u, open leg; the first one begins at 30°
ORDER = [(0, 1, 2), (0, 2, 1), (1, 2, 0), (1, 0, 2), (2, 0, 1), (2, 1, 0)]
SPREAD = np.array([0.6, 0.75, 0.9])  # places in a sector, after its commutation has ended
INSIDE = [k + share for k in range(COUNT) for share in SPREAD]


def induced(t: float) -> np.ndarray:
    angle = P * SPEED * t + SECTOR / 2.0
    return np.array([K * SPEED * trapezoid(angle - 2.0 * math.pi / 3.0 * k) for k in range(3)])


class Mode(NamedTuple):
    """Legs between two events. rail: of the diode of the open leg [V], None where its current is 0; resistance, drop:
    of a leg that conducts [Ω, V]."""

    plus: int
    minus: int
    rest: int
    rail: float | None
    resistance: float
    drop: float

    def rates(self, t: float, x: np.ndarray) -> list[float]:
        """Of the currents of the phases, and the power that legs and windings lose."""
        i, u, slope = x[:3], np.zeros(3), np.zeros(3)
        u[self.plus], u[self.minus], u[self.rest] = VOLTAGE, -VOLTAGE, self.rail or 0.0
        drops = self.drop * i / np.sqrt(i * i + 1e-18) + (self.resistance + R) * i
        over = u - drops - induced(t)
        if self.rail is not None:
            slope = (over - over.mean()) / L
        else:
            slope[self.plus] = (over[self.plus] - over[self.minus]) / (2.0 * L)
            slope[self.minus] = -slope[self.plus]
        return [*slope, float(drops @ i)]

    def ended(self, t: float, x: np.ndarray) -> float:
        """0 where the diode of the open leg ceases to conduct."""
        return 1.0 if self.rail is None else x[self.rest]

    def moved(self, begin: float, end: float, x: np.ndarray, places: list[float]) -> Any:
        """From a time to another or to its event; at the places too."""

        def ended(t: float, x: np.ndarray) -> float:
            return self.ended(t, x)

        ended.terminal = True  # type: ignore[attr-defined]
        options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
        return solve_ivp(self.rates, (begin, end), x, t_eval=[*places, end], events=ended, **options)


def ideal(resistance: float, drop: float) -> tuple[np.ndarray, float]:
    """(Currents of the phases at INSIDE, energy that legs and windings lose [J]), of ideal legs, mode after mode."""
    x, found = np.zeros(4), []
    for sector in range(COUNT):
        legs, end = ORDER[sector % 6], (sector + 1) * TIME
        places = [(sector + share) * TIME for share in SPREAD]
        begin, freewheeling = sector * TIME, x[legs[2]]
        if abs(freewheeling) > 1e-9:
            mode = Mode(*legs, -math.copysign(RAIL, freewheeling), resistance, drop)
            part = mode.moved(begin, places[0], x, [])
            assert part.status == 1  # the commutation ends before the first place
            begin, x = part.t_events[0][0], part.y_events[0][0]
            x[legs[2]], x[legs[1]] = 0.0, -x[legs[0]]
        part = Mode(*legs, None, resistance, drop).moved(begin, end, x, places)
        found += list(part.y[:3, :-1].T)
        x = part.y[:, -1]
    return np.array(found), float(x[3])


def of_component(inverter: Inverter | None, opened: float, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, Any]:
    """(Currents of the phases at INSIDE, the simulation)."""
    monkeypatch.setattr(bldc, "OPEN", opened)
    control = CurrentControl(voltage_limit=RAIL, inverter=inverter)
    motor = bldc.Params(P, R, L, K)
    graph = bldc.with_voltages(motor, control)
    if inverter is not None:
        _bridge.add_conduction(graph, bldc.BRIDGE, inverter)
    assembly = bench(graph, {"shaft": ("speed", "rad/s")}, voltage="V")
    t = TIME * np.array([0.0, *INSIDE, COUNT])
    start = {"part.rotor.displacement": SECTOR / 2.0 / P}
    found = Simulation(
        assembly, t, lambda _: {"speed": SPEED, "voltage": VOLTAGE}, start=start, rtol=1e-11, max_step=TIME / 20.0
    )
    phases = bldc.in_phases(found["part.winding_alpha.flow"], found["part.winding_beta.flow"])
    return np.array(phases)[:, 1:-1].T, found


IDEAL, LOST = ideal(0.0, 0.0)
LARGEST = float(np.abs(IDEAL).max())


@pytest.mark.parametrize("opened", [1e3, 1e5, 1e8])
def test_it_differs_from_ideal_legs_by_the_leak_of_an_open_one(opened: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most the rail over the resistance of an open leg, 1 / OPEN of all: with 1e8 the currents are those of the
    windings to 2e-8 of the largest one, over a turn of commutations."""
    found, run = of_component(None, opened, monkeypatch)
    error = np.abs(found - IDEAL).max()
    assert error < 0.25 * RAIL / (opened * R) + 1e-8 * LARGEST
    if opened < 1e6:
        assert error > 0.1 * RAIL / (opened * R)  # it is this
    assert run.energy_gap() < 1e-9
    assert run.dissipated[-1] == pytest.approx(LOST, rel=2e-3 if opened < 1e4 else 2e-5)


def test_resistances_of_its_legs_are_in_each_winding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly, also while three of them conduct."""
    inverter = Inverter(0.0, 20e3, 2.0 * RAIL, rounding_current=1e-6, on_resistance=0.02)
    found, run = of_component(inverter, 1e8, monkeypatch)
    expected, lost = ideal(0.02, 0.0)
    np.testing.assert_allclose(found, expected, atol=1e-7 * LARGEST)
    assert run.dissipated[-1] == pytest.approx(lost, rel=1e-6)


def test_the_drop_of_its_legs_is_nearly_the_one_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 V I of two legs in series; while three conduct it is along the vector of the currents, which is less exact."""
    inverter = Inverter(0.0, 20e3, 2.0 * RAIL, rounding_current=1e-6, on_voltage=0.9)
    found, run = of_component(inverter, 1e8, monkeypatch)
    expected, lost = ideal(0.0, 0.9)
    assert np.abs(expected - IDEAL).max() > 0.05 * LARGEST  # it matters
    np.testing.assert_allclose(found, expected, atol=8e-3 * LARGEST)
    assert run.dissipated[-1] == pytest.approx(lost, rel=1e-2)
