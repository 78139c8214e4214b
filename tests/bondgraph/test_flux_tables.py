"""Machines by flux tables: their currents, energy, motion and what is refused."""

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import Rig
from cosim.core.errors import InputError
from cosim.errors import RunWarning
from cosim.mechanics.bondgraph.components import pmsm
from cosim.mechanics.bondgraph.components._flux_tables import FluxTables
from tests.bondgraph.simulation import Simulation, bench
from tests.kit.messages import Said

MAGNETS, L_D, L_Q, BEND = 0.03, 0.6e-3, 2.0e-3, 0.35  # V s, H, H, J of the co-energy at which the iron saturates
P, R = 4, 0.2


def fluxes(i_d: Any, i_q: Any, bend: float = BEND) -> tuple[Any, Any]:
    """Of the co-energy ψ i_d + A (√(1 + 2 x / A) − 1), x = (L_d i_d² + L_q i_q²) / 2: with cross saturation."""
    weaker = np.sqrt(1.0 + (L_D * i_d * i_d + L_Q * i_q * i_q) / bend)
    return MAGNETS + L_D * i_d / weaker, L_Q * i_q / weaker


def table(bend: float = BEND, half: bool = False, count: int = 17) -> dict[str, Any]:
    i_d, i_q = np.linspace(-20.0, 20.0, count), np.linspace(0.0 if half else -20.0, 20.0, 9 if half else count)
    psi = fluxes(*np.meshgrid(i_d, i_q, indexing="ij"), bend)
    names = ("currents_d", "currents_q", "flux_d", "flux_q")
    return dict(zip(names, (values.tolist() for values in (i_d, i_q, *psi)), strict=True))


def tables(**keys: Any) -> FluxTables:
    as_tuples: dict[str, Any] = {
        name: tuple(map(tuple, value)) if "flux" in name else tuple(value) for name, value in keys.items()
    }
    return FluxTables(**as_tuples)


def machine(flux_tables: FluxTables | None, **more: Any) -> pmsm.Params:
    return pmsm.Params(P, R, L_D, L_Q, MAGNETS, inertia=2e-3, flux_tables=flux_tables, **more)


@pytest.mark.parametrize("half", [False, True])
def test_the_currents_are_those_of_the_table_between_its_points(half: bool) -> None:
    energy = tables(**table(half=half)).energy(1.0)
    assert energy.misfit < 5e-3 and not tables(**table(half=half)).doubts
    for i_d, i_q in np.random.default_rng(1).uniform(-19.0, 19.0, (60, 2)):
        assert energy.currents(*fluxes(i_d, i_q)) == pytest.approx((i_d, i_q), abs=0.08)
    assert energy.at_rest == pytest.approx((MAGNETS, 0.0), abs=1e-5)


def test_the_energy_is_that_of_the_fluxes() -> None:
    """Its gradient by differences; at the currents i it is ψ·i less the co-energy."""
    energy = tables(**table()).energy(1.0)
    for i_d, i_q in itertools.product((-12.0, 3.0, 15.0), (-14.0, 0.5, 9.0)):
        psi = np.array(fluxes(i_d, i_q))
        step = 1e-7
        slopes = [(energy.energy(*(psi + e)) - energy.energy(*(psi - e))) / (2 * step) for e in step * np.eye(2)]
        assert slopes == pytest.approx(energy.currents(*psi), rel=1e-5, abs=1e-5)
        x = 0.5 * (L_D * i_d * i_d + L_Q * i_q * i_q)
        co_energy = MAGNETS * i_d + BEND * (math.sqrt(1.0 + 2.0 * x / BEND) - 1.0)
        assert energy.energy(*psi) == pytest.approx(psi @ (i_d, i_q) - co_energy, abs=2e-3 * BEND)


def test_a_table_of_constant_inductances_is_the_machine_of_these() -> None:
    sources = {"d": ("u_d", "V"), "q": ("u_q", "V")}
    t = np.linspace(0.0, 0.05, 11)

    def supplied(time: float) -> dict[str, float]:
        return {"u_d": -3.0 * math.sin(200.0 * time), "u_q": 6.0}

    constant = Simulation(bench(pmsm.build(machine(None)), sources), t, supplied, rtol=1e-10)
    linear = Simulation(bench(pmsm.build(machine(tables(**table(1e12)))), sources), t, supplied, rtol=1e-10)
    assert linear["part.inertia.flow"] == pytest.approx(constant["part.inertia.flow"], rel=1e-6)
    flux = pmsm.SCALE * MAGNETS + L_D * constant["part.winding_d.flow"]
    assert linear["part.winding_d.momentum"] == pytest.approx(flux, rel=1e-6)
    assert linear.energy_gap() < 1e-8


def test_a_saturated_machine_moves_by_its_fluxes() -> None:
    """Beside SciPy with the currents of the exact law as states; friction and torque by its fluxes."""
    sources = {"d": ("u_d", "V"), "q": ("u_q", "V")}
    bearings = {"coulomb": 0.02, "load_friction": 0.05, "creep_speed": 1.0}
    t = np.linspace(0.0, 0.03, 16)

    def by_hand(time: float, x: np.ndarray) -> np.ndarray:
        i, w = x[:2], x[2]
        (psi_d, psi_q), e = fluxes(*i), 1e-5
        slopes = np.array([np.subtract(fluxes(*(i + m)), fluxes(*(i - m))) / (2 * e) for m in e * np.eye(2)]).T
        u = np.array([-2.0, 5.0]) / pmsm.SCALE
        rates = np.linalg.solve(slopes, u - R * i + P * w * np.array([psi_q, -psi_d]))
        torque = 1.5 * P * (psi_d * i[1] - psi_q * i[0])
        friction = (0.02 + 0.05 * abs(torque)) * w / math.sqrt(w * w + 1.0)
        return np.array([*rates, (torque - friction) / 2e-3])

    expected = solve_ivp(by_hand, (0.0, t[-1]), np.zeros(3), "LSODA", t, rtol=1e-9, atol=1e-11).y
    build = pmsm.build(machine(tables(**table()), **bearings))
    found = Simulation(bench(build, sources), t, lambda _: {"u_d": -2.0, "u_q": 5.0}, rtol=1e-10)
    assert 12.0 < np.abs(expected[:2]).max() < 20.0  # well into saturation, within the table
    assert found["part.inertia.flow"] == pytest.approx(expected[2], abs=5e-3 * np.ptp(expected[2]))
    psi_d, _ = fluxes(*expected[:2])
    assert found["part.winding_d.momentum"] / pmsm.SCALE == pytest.approx(psi_d, abs=5e-3 * np.ptp(psi_d))
    assert found.energy_gap() < 1e-9


MOTOR = {"type": "pmsm", "pole_pairs": P, "resistance": R, "inductance_d": L_D, "inductance_q": L_Q, "flux": MAGNETS}


def rig(flux_tables: dict[str, Any], **more: Any) -> Rig:
    drive = {"type": "drive", "motor": MOTOR | {"inertia": 2e-3, "flux_tables": flux_tables}}
    drive["control"] = {"bandwidth": 300, "current_limit": 18, "voltage_limit": 40}
    body = {"name": "wheel", "joint": "hub", "axis": [0, 0, 1], "type": "continuous", "mass": 1, "inertia": [0.05] * 3}
    goal = {"type": "quintic", "goal": 2.0, "duration": 0.3, "back": True}
    schedule = {"step": "1 ms", "duration": "0.6 s", "integrator": "rodas4", "substeps": "auto", "tolerance": 1e-9}
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
            "joints": {"hub": {"actuator": drive | more}},
            "controllers": [{"type": "pid", "kp": 60, "ki": 0, "kd": 3, "trajectory": goal}],
            "schedule": schedule,
        }
    )


@pytest.mark.parametrize("loops", [{}, {"loops": {"mode": "effort", "current": {"rate": 16e3}}}])
def test_a_drive_of_a_saturated_machine_gives_the_torque_of_its_currents(loops: dict[str, Any]) -> None:
    """Which is less than its constant parameters let it expect; the energy closes."""
    run = rig(table(), **loops).run()
    energy = run.summary["energy"]
    assert energy is not None and abs(energy["residual_relative"]) < 1e-9
    i_d, i_q = run["hub/current_d"], run["hub/current_q"]
    psi_d, psi_q = fluxes(i_d, i_q)
    torque = 1.5 * P * (psi_d * i_q - psi_q * i_d)
    given = run["hub/measured_effort"]  # with what accelerates the rotor
    assert given == pytest.approx(torque, abs=3e-3 * np.ptp(torque))
    assert np.abs(i_q).max() > 10.0


def test_a_table_that_is_not_conservative_is_warned_of(said: Said) -> None:
    wrong = table()
    wrong["flux_d"] = (np.array(wrong["flux_d"]) + 2e-4 * np.array(wrong["currents_q"])).tolist()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = rig(wrong).run(0.05)
    lines = [str(item.message) for item in caught if issubclass(item.category, RunWarning)]
    assert lines == run.warnings and len(lines) == 2
    energy = run.summary["energy"]
    assert energy is not None and abs(energy["residual_relative"]) < 1e-9
    said(lines)


WRONG: dict[str, dict[str, Any]] = {
    "currents that fall": {"currents_d": [20, 0, -20]},
    "a row too few": {"flux_d": [[0.01, 0.02, 0.03]] * 2},
    "no middle": {"currents_d": [1, 2, 3]},
    "exchanged axes": {"flux_d": [[0.01, 0.02, 0.03]] * 3},
}
SMALL = {
    "currents_d": [-10, 0, 10],
    "currents_q": [-10, 0, 10],
    "flux_d": [[0.02] * 3, [0.03] * 3, [0.04] * 3],
    "flux_q": [[-0.02, 0.0, 0.02]] * 3,
}


@pytest.mark.parametrize("case", WRONG)
def test_a_table_that_cannot_be_is_refused(case: str, said: Said) -> None:
    with pytest.raises(InputError) as raised:
        rig(SMALL | WRONG[case])
    said(raised.value)
