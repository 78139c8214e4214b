"""Drives with a cable between the inverter and the motor."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from cosim import Rig, Run
from cosim.core.errors import InputError
from cosim.mechanics.bondgraph.components import cable, dc_machine
from cosim.mechanics.bondgraph.components._current_control import CurrentControl
from cosim.mechanics.bondgraph.graph import ElectricMachine
from cosim.plugins.actuators import drive
from tests.actuators.test_open_loop_drive import gap_of
from tests.actuators.test_switched_inverter import LOOPS, MOTORS, ROTOR
from tests.bondgraph.simulation import Simulation, bench
from tests.bondgraph.test_flux_tables import L_D, L_Q, MAGNETS, table
from tests.kit.messages import Said
from tests.kit.refusals import raised

CABLE = {"length": "30 m", "resistance": 8e-3, "inductance": 1e-6, "temperature_rise": 40}
MORE_R, MORE_L = 30 * 8e-3 * (1.0 + 0.00393 * 40), 30 * 1e-6  # of one conductor
LINEAR = {"pole_pitch": 0.02, "force_constant": 4, "resistance": 0.3, "inductance_d": 1e-3, "inductance_q": 1e-3}
KINDS: dict[str, dict[str, Any]] = {
    **{name: {"motor": {"type": name, **ROTOR, **motor}} for name, motor in MOTORS.items()},
    "linear_motor": {"motor": {"type": "linear_motor", **LINEAR}},
}
OPEN_LOOPS: dict[str, dict[str, Any]] = {
    "stepper": {"steps": {"current": 3}},
    "induction_machine": {"volts_per_hertz": {"voltage": 20, "frequency": 50, "boost": 2}},
}
FORMS = [
    *((motor, form) for motor in KINDS for form in ("continuous", "sampled")),
    *((motor, "open_loop") for motor in OPEN_LOOPS),
]


def moved(kind: str, form: str, schedule: Mapping[str, Any], **more: Any) -> Run:
    """There and back."""
    return rig_with(kind, form, schedule, **more).run()


def rig_with(kind: str, form: str, schedule: Mapping[str, Any], **more: Any) -> Rig:
    control = {"bandwidth": 800, "voltage_limit": 24, "current_limit": 20}
    actuator = {"type": "drive", **KINDS[kind], "control": control, "cable": CABLE, "powers": True, **more}
    velocity = {"gain": 40 if kind == "linear_motor" else 0.02, "rate": "5 kHz"}
    loops = {**LOOPS, "velocity": velocity, "position": {"gain": 30, "rate": "1 kHz"}}
    if form == "open_loop":
        actuator["open_loop"] = OPEN_LOOPS[kind]
    else:
        actuator["loops"] = loops if form == "sampled" else {k: v for k, v in loops.items() if k != "current"}
    wheel = {"name": "wheel", "joint": "hinge", "axis": [0, 0, 1], "mass": 1, "inertia": [1e-4, 1e-4, 1e-4]}
    if kind == "linear_motor":
        wheel["type"] = "prismatic"
    goal = {"type": "quintic", "goal": 0.1 if kind == "linear_motor" else 1.0, "duration": 0.06, "back": True}
    return Rig.from_dict(
        {
            "name": "cable",
            "mechanism": {"gravity": [0, 0, 0], "bodies": [wheel]},
            "joints": {"hinge": {"actuator": actuator}},
            "controllers": [{"type": "passthrough", "kp": 1, "kd": 0, "trajectory": goal}],
            "schedule": {"step": "1 ms", "duration": "0.14 s", **schedule},
        }
    )


CHOSEN = {"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-9}


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_its_energy_closes_with_every_motor(kind: str, form: str) -> None:
    """Both directions of the power; its loss is a part of its own, and the parts are what is dissipated."""
    run = moved(kind, form, CHOSEN)
    assert gap_of(run) < 1e-9
    energy, parts = run.summary["energy"], dict(run.summary["powers"]["hinge"])
    electrical, _ = parts.pop("electrical"), parts.pop("returned")
    assert energy is not None and parts["cable"] > 0.05 * parts["copper"]
    power = run["hinge/effort"] * run["hinge/velocity"]
    assert power.min() < -0.1 * power.max() < 0.0
    assert sum(parts.values()) == pytest.approx(energy["dissipated"], rel=1e-9)
    assert electrical == pytest.approx(energy["work_in"], rel=1e-9)


@pytest.mark.parametrize(("integrator", "substeps", "bound"), [("rk4", 400, 1e-9), ("rosenbrock", 1000, 1e-6)])
def test_its_energy_closes_with_fixed_steps(integrator: str, substeps: int, bound: float) -> None:
    schedule = {"integrator": integrator, "substeps": substeps, "duration": "30 ms"}
    assert gap_of(moved("pmsm", "sampled", schedule)) < bound


@pytest.mark.parametrize(("kind", "conductors"), [("dc_machine", 2), ("stepper", 2), ("bldc", 1), ("pmsm", 1)])
def test_its_loss_is_the_current_in_as_many_conductors_as_the_machine_needs(kind: str, conductors: int) -> None:
    run = moved(kind, "sampled", CHOSEN)
    of_phases = {"dc_machine": ["current"], "stepper": ["current_a", "current_b"]}
    names = of_phases.get(kind, ["current_a", "current_b", "current_c"])
    if kind == "pmsm":  # amplitudes: 3/2 R i² is of all phases
        squares = 1.5 * (run["hinge/current_d"] ** 2 + run["hinge/current_q"] ** 2)
    else:
        squares = np.sum([run[f"hinge/{name}"] ** 2 for name in names], axis=0)
    assert run["hinge/cable_loss"] == pytest.approx(conductors * MORE_R * squares, rel=1e-9, abs=1e-12)


def test_its_loss_heats_no_winding() -> None:
    """A winding that keeps its heat: C T is the energy of the copper alone."""
    thermal = {"winding_capacity": 5, "housing_capacity": 100, "winding_to_housing": 1e9, "housing_to_ambient": 1}
    motor = {**KINDS["pmsm"]["motor"], "thermal": thermal}
    run = moved("pmsm", "sampled", CHOSEN, motor=motor)
    assert 5.0 * run["hinge/winding_temperature"] == pytest.approx(run["hinge/copper_energy"], rel=1e-6, abs=1e-9)
    assert run["hinge/cable_energy"][-1] > 0.5 * run["hinge/copper_energy"][-1]


@pytest.mark.parametrize("form", ["continuous", "sampled"])
def test_its_energy_closes_before_a_machine_by_flux_tables(form: str) -> None:
    motor = {"type": "pmsm", **ROTOR, **MOTORS["pmsm"], "inductance_d": L_D, "inductance_q": L_Q, "flux": MAGNETS}
    run = moved("pmsm", form, {**CHOSEN, "tolerance": 1e-11}, motor={**motor, "flux_tables": table()})
    assert gap_of(run) < 1e-9
    squares = 1.5 * (run["hinge/current_d"] ** 2 + run["hinge/current_q"] ** 2)
    assert run["hinge/cable_loss"] == pytest.approx(MORE_R * squares, rel=1e-9, abs=1e-12)


def test_its_conductors_may_be_given() -> None:
    runs = [moved("dc_machine", "sampled", CHOSEN, cable={**CABLE, "conductors": n}) for n in (2, 4)]
    ratio = [run["hinge/cable_loss"][5] / run["hinge/current"][5] ** 2 for run in runs]
    assert ratio[1] == pytest.approx(2.0 * ratio[0], rel=1e-9)


@pytest.mark.parametrize("form", ["continuous", "sampled"])
def test_a_servo_that_turns_has_the_voltages_of_motor_and_cable(form: str) -> None:
    """At a constant speed u_d = −p ω (L_q + L) i_q and u_q = (R + R_c) i_q + p ω ψ: the loop of a drive that knows the
    motor alone finds the rest, and i_d stays 0."""
    motor = {**MOTORS["pmsm"], "viscous": 4e-3}
    loops = {"mode": "velocity", "velocity": {"gain": 0.05, "integral_time": "10 ms", "rate": "5 kHz"}}
    if form == "sampled":
        loops |= {"current": {"rate": "20 kHz"}}
    wheel = {"name": "wheel", "joint": "hinge", "axis": [0, 0, 1], "mass": 1, "inertia": [1e-4, 1e-4, 1e-4]}
    control = {"bandwidth": 500, "voltage_limit": 60}
    actuator = {"type": "drive", "motor": {"type": "pmsm", **ROTOR, **motor}, "control": control, "cable": CABLE}
    goal = {"type": "trapezoidal", "goal": 1e4, "max_velocity": 300, "max_acceleration": 6000}
    rig = {
        "mechanism": {"gravity": [0, 0, 0], "bodies": [wheel]},
        "joints": {"hinge": {"actuator": {**actuator, "loops": loops}}},
        "controllers": [{"type": "passthrough", "kp": 1, "kd": 0, "trajectory": goal}],
        "schedule": {"step": "1 ms", "duration": "0.5 s", "integrator": "rk4", "substeps": 40},
    }
    run = Rig.from_dict(rig).run()
    i_d, i_q, u_d, u_q = (run[f"hinge/{name}"][-1] for name in ("current_d", "current_q", "voltage_d", "voltage_q"))
    assert run["hinge/velocity"][-1] == pytest.approx(300.0, rel=1e-6) and abs(i_d) < 1e-5 * i_q
    turning = 4 * 300.0
    assert i_q == pytest.approx(4e-3 * 300.0 / (1.5 * 4 * 5e-3), rel=1e-5)
    expected = [-turning * (2e-4 + MORE_L) * i_q, (0.2 + MORE_R) * i_q + turning * 5e-3]
    assert [u_d, u_q] == pytest.approx(expected, rel=1e-4)


def test_a_step_of_the_current_has_its_closed_form() -> None:
    """Held: the loop with its observer, i = N(s) / D(s) i* with a = R / L, N = (R + ω L) (s + a) and
    D = (L + L_c) s² + (ω L + 2 R + R_c) s + a (R + ω L), by the poles of D."""
    motor, line = dc_machine.Params(0.5, 2e-3, inertia=3e-5, torque_constant=0.04), cable.Params(50.0, 6e-3, 5e-6)
    control = CurrentControl(150.0)
    params = drive.Params(ElectricMachine("dc_machine", dc_machine, motor), control, cable=line)
    held = bench(drive.motor_of(params), {"shaft": ("speed", "rad/s")}, request="N*m")
    t = np.array([*np.linspace(0.0, 20e-3, 15), 0.2])
    options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-12}
    found = Simulation(held, t, lambda _: {"speed": 0.0, "request": 0.08}, **options)
    R, L, a, driving = 0.5, 2e-3, 250.0, 0.5 + control.rate * 2e-3
    D = np.array([L + 100.0 * 5e-6, driving + R + 100.0 * 6e-3, a * driving])
    expected = np.full(t.shape, 2.0)
    for pole in np.roots(D):  # both are real: the current is slow where the drive does not know the cable
        expected += 2.0 * driving * (pole + a) / (pole * (2.0 * D[0] * pole + D[1])) * np.exp(pole * t)
    assert found["part.winding.flow"] == pytest.approx(expected, rel=1e-8, abs=1e-10)
    assert found["part.missing.displacement"][-1] == pytest.approx(-100.0 * 6e-3 * 2.0, rel=1e-3)


def test_the_ripple_of_a_switched_inverter_is_of_motor_and_cable() -> None:
    """U / (8 f (L + 2 L_c)) at half the voltage, at standstill, of a full bridge that is on twice per period."""
    inverter = {"dead_time": 0, "switching_frequency": "20 kHz", "supply_voltage": 48, "switched": True}
    motor = {"type": "dc_machine", "resistance": 1.2, "inductance": 4e-4, "torque_constant": 0.06, "inertia": 1e3}
    line = {"length": "50 m", "resistance": 1e-4, "inductance": 2e-6}
    torque = 24.0 / (1.2 + 100 * 1e-4) * 0.06
    wheel = {"name": "wheel", "joint": "hinge", "axis": [0, 0, 1], "mass": 1, "inertia": [1e4, 1e4, 1e4]}
    goal = {"type": "trapezoidal", "goal": 1e9, "max_velocity": 1e9, "max_acceleration": 1e12}
    actuator = {"type": "drive", "motor": motor, "cable": line, "control": {"bandwidth": 300, "inverter": inverter}}
    rig = {
        "mechanism": {"gravity": [0, 0, 0], "bodies": [wheel]},
        "joints": {"hinge": {"actuator": actuator, "limits": {"effort": torque}}},
        "controllers": [{"type": "pid", "kp": 1, "ki": 0, "kd": 0, "trajectory": goal}],
        "schedule": {"step": "6.25 us", "duration": "20 ms", "integrator": "rk4", "substeps": 8},
    }
    run = Rig.from_dict(rig).run()
    current = run["hinge/current"][-160:]
    assert run["hinge/voltage"][-1] == pytest.approx(24.0, rel=1e-3)
    assert np.ptp(current) == pytest.approx(48.0 / (8 * 20e3 * (4e-4 + 100 * 2e-6)), rel=5e-3)


def test_drives_on_a_supply_have_cables() -> None:
    """The link gives what motors, cables and its own resistance take."""
    motor = {"type": "pmsm", "pole_pairs": 4, "resistance": 0.9, "inductance_d": 5e-3, "inductance_q": 5e-3}
    actuator = {
        "type": "drive", "motor": {**motor, "flux": 0.14, "inertia": 12e-4}, "cable": CABLE, "supply": "link",
        "control": {"bandwidth": 300, "current_limit": 30, "voltage_limit": 175}, "gears": [{"ratio": 20}],
        "powers": True,
    }  # fmt: skip
    table = {"name": "table", "joint": "table", "axis": [0, 0, 1], "mass": 80, "inertia": [5, 5, 9]}
    goal = {"type": "quintic", "goal": 1.0, "duration": 0.4}
    rig = {
        "mechanism": {"gravity": [0, 0, 0], "bodies": [table]},
        "supplies": {
            "link": {"source": {"type": "diode_bridge", "voltage": 310, "resistance": 0.4}, "capacitance": 1e-3}
        },
        "joints": {"table": {"actuator": actuator}},
        "controllers": [{"type": "feedforward_pd", "kp": 20000, "kd": 900, "trajectory": goal}],
        "schedule": {"step": "1 ms", "duration": "0.5 s", **CHOSEN},
    }
    run = Rig.from_dict(rig).run()
    assert gap_of(run) < 1e-9
    squares = 1.5 * (run["table/current_d"] ** 2 + run["table/current_q"] ** 2)
    assert run["table/cable_loss"] == pytest.approx(MORE_R * squares, rel=1e-9, abs=1e-12)


class UnknownWindings:
    """A motor of another package that does not tell its inverter."""

    @staticmethod
    def controlled(*_: Any) -> None:
        """Never called."""


def test_a_cable_before_windings_that_are_not_known_is_refused(said: Said) -> None:
    motor = ElectricMachine("my_motor", UnknownWindings, dc_machine.Params(0.5, 2e-3, torque_constant=0.04))
    params = drive.Params(motor, cable=cable.Params(1.0, 1e-3))
    said(str(raised(InputError, drive.load, params)))


def test_a_cable_that_has_no_resistance_is_refused(said: Said) -> None:
    said(str(raised(InputError, moved, "pmsm", "sampled", CHOSEN, cable={**CABLE, "temperature_rise": -300})))
