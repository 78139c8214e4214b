"""The currents of salient machines: against a numerical optimum, the voltage ellipse, and the power of a drive."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cosim import Rig
from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.core.errors import InputError
from cosim.mechanics.bondgraph.components import pmsm
from cosim.mechanics.bondgraph.components._current_control import CurrentControl
from cosim.mechanics.bondgraph.components._operating_point import LinearFlux
from tests.kit.messages import Said

# buried magnets, most of the torque by saliency, L_d > L_q, no saliency, and one that is weakened without end
MACHINES = {
    "buried": LinearFlux(0.05, 1e-3, 2.5e-3),
    "reluctance": LinearFlux(0.01, 1e-3, 6e-3),
    "reversed": LinearFlux(0.02, 2e-3, 1e-3),
    "round": LinearFlux(0.05, 1e-3, 1e-3),
    "weak": LinearFlux(0.02, 1e-3, 1.5e-3),
}
LARGEST = 30.0  # A


def polar(flux: LinearFlux, linkage: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Torque, amplitude and feasibility on a fine grid of currents."""
    amplitude, angle = np.meshgrid(np.linspace(0.0, LARGEST, 601), np.linspace(0.0, math.pi, 1801))
    i_d, i_q = amplitude * np.cos(angle), amplitude * np.sin(angle)
    size = np.hypot(flux.inductance_d * i_d + flux.flux, flux.inductance_q * i_q)
    return flux.torque(i_d, i_q), amplitude, size <= linkage


@pytest.mark.parametrize("name", MACHINES)
def test_the_currents_are_the_least_of_their_torque_within_both_limits(name: str) -> None:
    """A grid of all currents has none with as much torque and clearly less current, and no clearly larger torque."""
    flux = MACHINES[name]
    for linkage in np.array([4.0, 1.2, 0.8, 0.5, 0.2]) * flux.flux:
        torque, amplitude, feasible = polar(flux, linkage)
        if not feasible.any():  # the largest current cannot weaken the field so far: all of it does
            assert flux.setpoints(1.0, linkage, LARGEST) == pytest.approx((-LARGEST, 0.0), abs=1e-4)
            continue
        most = torque[feasible].max()
        for share, sign in itertools.product((0.1, 0.5, 0.9, 2.0), (1.0, -1.0)):
            i_d, i_q = flux.setpoints(sign * share * most, linkage, LARGEST)
            found = sign * flux.torque(i_d, i_q)
            size = math.hypot(flux.inductance_d * i_d + flux.flux, flux.inductance_q * i_q)
            assert math.hypot(i_d, i_q) <= LARGEST * (1.0 + 1e-9) and size <= linkage * (1.0 + 1e-9)
            assert found >= most * (1.0 - 1e-9) if share > 1.0 else found == pytest.approx(share * most, rel=1e-6)
            if share < 1.0:
                least = amplitude[feasible & (torque >= found)].min()
                assert math.hypot(i_d, i_q) <= least * (1.0 + 1e-9)


@pytest.mark.parametrize("name", MACHINES)
def test_mtpa_and_mtpv_are_the_optima_of_their_curves(name: str) -> None:
    """By a search along the circle of the current, and along the voltage ellipse."""
    flux = MACHINES[name]
    circle: Any = minimize_scalar(
        lambda b: -flux.torque(20.0 * math.cos(b), 20.0 * math.sin(b)),
        bounds=(0.0, math.pi),
        method="bounded",
        options={"xatol": 1e-12},
    )
    i_d, i_q = flux.of_amplitude(20.0)
    assert flux.torque(i_d, i_q) == pytest.approx(-circle.fun, rel=1e-12)
    assert math.hypot(i_d, i_q) == pytest.approx(20.0, rel=1e-12)
    assert flux.of_torque(-circle.fun) == pytest.approx((i_d, i_q), rel=1e-9, abs=1e-9)
    linkage = 0.7 * flux.flux
    ellipse: Any = minimize_scalar(
        lambda a: -flux.torque(*flux.on_ellipse(linkage, math.cos(a), math.sin(a))),
        bounds=(0.0, math.pi),
        method="bounded",
        options={"xatol": 1e-12},
    )
    assert flux.last_cosine(linkage, math.inf) == pytest.approx(math.cos(ellipse.x), abs=1e-6)


def test_the_currents_are_the_same_in_machine_code() -> None:
    flux = MACHINES["buried"]
    ports = [ArrayPort("m", ()), ArrayPort("linkage", ())]
    compiled = compile(
        lambda m, linkage: ops.array([*flux.setpoints(m, linkage, 30.0)]), ports, "setpoints", interpret=False
    )
    for m, linkage in itertools.product((-2.0, -0.3, 0.0, 0.4, 1.5), (0.01, 0.03, 0.06, 1.0)):
        found = np.array(compiled(np.array(m), np.array(linkage))).ravel()
        assert found == pytest.approx(np.ravel(flux.setpoints(m, linkage, 30.0)), rel=1e-12, abs=1e-12)


MOTOR = {"type": "pmsm", "pole_pairs": 4, "resistance": 0.05, "inductance_d": 5e-4, "inductance_q": 2.5e-3}
MOTOR |= {"flux": 0.03, "inertia": 1e-3}


def turned(request: float, currents: str, speed: float = 0.0, **more: Any) -> Any:
    """A run of a flywheel at a speed, under a constant request."""
    drive = {"type": "drive", "motor": MOTOR, "control": {"bandwidth": 500, "current_limit": 30, "currents": currents}}
    drive["control"] |= more.pop("control", {})
    body = {"name": "wheel", "joint": "hub", "axis": [0, 0, 1], "type": "continuous", "mass": 1, "inertia": [1e4] * 3}
    goal = {"type": "trapezoidal", "goal": 1e7, "max_velocity": 1e6, "max_acceleration": 1e9}
    section = {
        "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
        "joints": {"hub": {"actuator": drive | more, "limits": {"effort": request}, "initial": {"velocity": speed}}},
        "controllers": [{"type": "pid", "kp": 1, "ki": 0, "kd": 0, "trajectory": goal}],
        "schedule": {"step": "0.5 ms", "duration": "0.1 s", "integrator": "rodas4", "substeps": "auto"},
    }
    return Rig.from_dict(section).run()


@pytest.mark.parametrize("loops", [{}, {"loops": {"mode": "effort", "current": {"rate": 16e3}}}])
def test_a_salient_drive_gives_its_torque_with_less_current(loops: dict[str, Any]) -> None:
    """The same torque at less loss than i_d = 0, and more of it at the limit of the current."""
    least, zero = (turned(4.0, currents, **loops) for currents in ("mtpa", "zero_d"))
    for run in (least, zero):
        assert run["hub/effort"][-1] == pytest.approx(4.0, rel=1e-4)
    amplitude = [np.hypot(run["hub/current_d"], run["hub/current_q"])[-1] for run in (least, zero)]
    assert amplitude[0] < 0.8 * amplitude[1]
    most = turned(50.0, "mtpa", **loops)
    b = np.linspace(0.0, math.pi, 100_001)
    by_hand = 6.0 * 30.0 * np.sin(b) * (0.03 - 2e-3 * 30.0 * np.cos(b))
    assert most["hub/effort"][-1] == pytest.approx(by_hand.max(), rel=1e-4)


@pytest.mark.parametrize("speed", [150.0, 300.0])
def test_a_salient_drive_keeps_its_voltage_ellipse(speed: float) -> None:
    """Above the base speed: the torque that 0.9 of the voltage allows, the equations of the machine, its efficiency."""
    run = turned(50.0, "mtpa", speed, control={"voltage_limit": 24.0})
    i_d, i_q, u_d, u_q = (run[f"hub/{name}"][-1] for name in ("current_d", "current_q", "voltage_d", "voltage_q"))
    w = 4.0 * run["hub/velocity"][-1]
    assert (u_d, u_q) == pytest.approx((0.05 * i_d - w * 2.5e-3 * i_q, 0.05 * i_q + w * (5e-4 * i_d + 0.03)), abs=0.02)
    induced = w * math.hypot(5e-4 * i_d + 0.03, 2.5e-3 * i_q)
    assert induced == pytest.approx(0.9 * 24.0, rel=1e-3) and math.hypot(u_d, u_q) < 24.0
    a = np.linspace(0.0, math.pi, 200_001)
    d, q = (21.6 / w * np.cos(a) - 0.03) / 5e-4, 21.6 / w * np.sin(a) / 2.5e-3
    torque = 6.0 * q * (0.03 - 2e-3 * d)
    assert run["hub/effort"][-1] == pytest.approx(torque[np.hypot(d, q) <= 30.0].max(), rel=2e-3)
    power = 1.5 * (u_d * i_d + u_q * i_q)
    eta = run["hub/effort"][-1] * run["hub/velocity"][-1] / power
    assert eta == pytest.approx(1.0 - 1.5 * 0.05 * (i_d**2 + i_q**2) / power, rel=2e-3)


def test_the_least_currents_are_of_synchronous_machines(said: Said) -> None:
    with pytest.raises(InputError) as raised:
        motor = {"type": "dc_machine", "resistance": 1, "inductance": 1e-3, "torque_constant": 0.1, "inertia": 1e-3}
        turned(1.0, "mtpa", motor=motor)
    said(raised.value)


def test_the_largest_torque_of_a_control_without_a_limit_is_infinite() -> None:
    servo = pmsm.Params(4, 0.5, 1.0e-3, 1.8e-3, 0.02)
    windings = pmsm.windings(servo, CurrentControl(currents="mtpa"))
    assert windings.largest_torque(math.inf) == math.inf
