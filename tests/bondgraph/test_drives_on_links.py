"""The control of a motor's current knows the voltage of the DC link that its inverter is on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cosim import Rig
from cosim.core import ops
from cosim.core.servo.cascade import CurrentLoop
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import BondGraph, Law, Se, Sf, assemble
from cosim.mechanics.bondgraph.components import bldc, dc_machine, induction_machine, linear_motor, pmsm, stepper
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, PhaseLimits, SampledCurrentLoop
from cosim.plugins.actuators._supplied_drives import on_link
from tests.bondgraph.simulation import Simulation

MACHINE = dc_machine.Params(0.8, 3e-3, torque_constant=0.6)
SERVO = pmsm.Params(4, 0.5, 2.0e-3, 3.0e-3, 0.1)
LINEAR = linear_motor.Params(0.06, 40.0, 0.8, 2e-3, 3e-3)
STEPPER = stepper.Params(10, 0.8, 3e-3, 0.9)
TRAPEZOID = bldc.Params(2, 0.5, 1e-3, 0.25)
INDUCTION = induction_machine.Params(2, 0.8, 0.5, 30e-3, 1e-3, 1e-3, flux=0.15, excited=True)
# (module, parameters, effort, travel per second): the motion induces about half the voltage that 100 V of the link give
MOTORS: dict[str, tuple[Any, Any, float, float]] = {
    "dc_machine": (dc_machine, MACHINE, 6.0, 90.0),
    "pmsm": (pmsm, SERVO, 4.0, 90.0),
    "linear_motor": (linear_motor, LINEAR, 200.0, 1.1),
    "stepper": (stepper, STEPPER, 5.0, 60.0),
    "bldc": (bldc, TRAPEZOID, 4.0, 110.0),
    "induction_machine": (induction_machine, INDUCTION, 4.0, 90.0),
}
OBSERVED = ("dc_machine", "pmsm", "linear_motor", "stepper")  # by a disturbance observer
SAG, BACK, END = 0.03, 0.09, 0.15  # s


def sagging(t: Numeric) -> Numeric:
    """40 % of the voltage from SAG to BACK, by steep ramps [V]."""
    return 100.0 - 60.0 * (ops.clip((t - SAG) / 2e-3, 0.0, 1.0) - ops.clip((t - BACK) / 2e-3, 0.0, 1.0))


def on_voltage(name: str, control: CurrentControl, link: Law, knows: bool = True, params: Any = None) -> BondGraph:
    """A controlled motor on an inverter whose link has a voltage by a law, free to move. knows: whether its control
    knows it; params: in place of those of MOTORS."""
    module, own, *_ = MOTORS[name]
    bridge = module.BRIDGE
    motor = module.controlled(params or own, control.on_link(bridge.per_link) if knows else control, 1.0)
    motor.inputs["request"] = ""
    graph = BondGraph()
    graph.include("motor", on_link(motor, bridge, 1.0))
    graph.add("link", Se("electrical", link))
    graph.bond("motor.link", "link")
    return graph


def at_speed(name: str, control: CurrentControl, knows: bool = True) -> Simulation:
    """Through a sag of its link."""
    _, _, effort, speed = MOTORS[name]
    graph = on_voltage(name, control, Law(sagging, ("t",)), knows)
    graph.add("shaft", Sf("translational" if name == "linear_motor" else "rotational", speed))
    graph.bond("motor.shaft", "shaft")
    t = np.linspace(0.0, END, 600)
    return Simulation(assemble(graph), t, lambda _: {"request": effort}, rtol=1e-8, max_step=5e-4)


@pytest.mark.parametrize("name", OBSERVED)
def test_a_sag_of_the_link_winds_up_no_observer(name: str) -> None:
    """d̂ stays 0 where the winding is as the drive knows it, and the effort returns; a control that does not know the
    link winds up."""
    control = CurrentControl(300.0, current_limit=40.0)
    largest = {}
    for knows in (True, False):
        found = at_speed(name, control, knows)
        missing = [values for state, values in found.states.items() if ".missing" in state]
        largest[knows] = max(float(np.max(np.abs(values))) for values in missing)
        assert found.energy_gap() < 1e-7
    assert len(missing) == (1 if name == "dc_machine" else 2)
    assert largest[True] < 1e-9 and largest[False] > 5.0


def test_the_current_returns_without_overshoot_after_a_sag() -> None:
    wanted, ends = 10.0, {}
    for knows in (True, False):
        found = at_speed("dc_machine", CurrentControl(300.0, current_limit=40.0), knows)
        current, sags = found["motor.winding.flow"], (found.t > SAG + 5e-3) & (found.t < BACK)
        assert np.max(current[sags]) < 0.0  # 54 V of the motion are more than 40 V
        ends[knows] = np.max(current) - wanted
        assert current[-1] == pytest.approx(wanted, rel=1e-6) or not knows
    assert ends[True] < 1e-6 * wanted and ends[False] > 0.2 * wanted


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize("currents", ["zero_d", "mtpa"])
def test_a_field_that_is_weakened_at_a_link_that_sags_reaches_the_speed_of_its_closed_form(
    currents: Any, knows: bool
) -> None:
    """At ω = 0.9 U / p (ψ − L_d I) all current weakens the field, and no torque is left. A control that does not know
    the link goes as far as to ω = U / p ψ, where the motion induces its voltage."""
    largest, servo = 20.0, pmsm.Params(4, 0.05, 2.0e-3, 3.0e-3, 0.1, inertia=2e-4)
    control = CurrentControl(300.0, current_limit=largest, currents=currents)
    graph = on_voltage(
        "pmsm", control, Law(lambda t: 100.0 - 60.0 * ops.clip(t / 0.05, 0.0, 1.0), ("t",)), knows, servo
    )
    found = Simulation(assemble(graph), np.linspace(0.0, 0.6, 50), lambda _: {"request": 0.2}, rtol=1e-8)
    speed, voltage = found["motor.inertia.flow"], 40.0 / np.sqrt(3.0)
    weakened, alone = 0.9 * voltage / (4 * (0.1 - 2e-3 * largest)), voltage / (4 * 0.1)
    assert speed[-1] == pytest.approx(weakened if knows else alone, rel=1e-2)


# --- rigs ---

BODIES = [{"name": "arm", "joint": "arm", "axis": [0, 0, 1], "mass": 1, "inertia": [1, 1, 0.05]}]
INVERTER = {"dead_time": 1e-6, "switching_frequency": 16e3, "supply_voltage": 100, "on_voltage": 0.8}
PMSM = {"type": "pmsm", "pole_pairs": 4, "resistance": 0.5, "inductance_d": 2e-3, "inductance_q": 3e-3, "flux": 0.1}
STEPS = {"type": "stepper", "teeth": 10, "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.9}
CAGE = {
    "type": "induction_machine", "pole_pairs": 2, "stator_resistance": 0.8, "rotor_resistance": 0.5,
    "magnetising_inductance": 30e-3, "stator_leakage": 1e-3, "rotor_leakage": 1e-3, "flux": 0.3, "excited": True,
}  # fmt: skip
DC = {"type": "dc_machine", "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.6}
HALL = {"type": "bldc", "pole_pairs": 2, "resistance": 0.5, "inductance": 1e-3, "back_emf": 0.25}
CURRENT = {"rate": 8e3}
FAST = {"velocity": {"rate": 4e3, "gain": 20, "integral_time": 0.05}, "position": {"rate": 1e3, "gain": 20}}
ELASTIC = [{"ratio": 5, "stiffness": 2000, "damping": 1}]
OVERLOAD = {"current_limit": 20, "overload": {"continuous_current": 3, "time_constant": 0.02}}
# keys of the drive; the first ones without samples
DRIVES: dict[str, dict[str, Any]] = {
    **{f"a {motor['type']}": {"motor": motor} for motor in (DC, PMSM, STEPS, CAGE, HALL)},
    "a pmsm by mtpa": {"motor": PMSM, "control": {"currents": "mtpa"}},
    "a dc_machine with effort loops": {"motor": DC, "loops": {"mode": "effort", "current": CURRENT}},
    "a pmsm with all loops and an encoder": {
        "motor": PMSM,
        "gears": ELASTIC,
        "loops": {"mode": "position", "current": CURRENT, "encoder": {"cpr": 4096}, **FAST},
    },
    "a pmsm with a brake": {"motor": PMSM, "brake": {"effort": 2}, "loops": {"current": CURRENT, **FAST}},
    "a pmsm with an overload": {"motor": PMSM, "control": OVERLOAD, "loops": {"current": CURRENT, **FAST}},
    "a continuous current below a velocity loop": {
        "motor": PMSM, "loops": {"mode": "velocity", "velocity": FAST["velocity"]},
    },
    "a stepper with loops": {"motor": STEPS, "loops": {"mode": "position", "current": CURRENT, **FAST}},
    "a bldc with loops": {"motor": HALL, "loops": {"mode": "velocity", "current": CURRENT, **FAST}},
    "an induction_machine with loops": {"motor": CAGE, "loops": {"mode": "position", "current": CURRENT, **FAST}},
    "a stepper that counts steps": {"motor": STEPS, "open_loop": {"steps": {"current": 4}, "rate": 4e3}},
    "an induction_machine at V/f": {
        "motor": {key: value for key, value in CAGE.items() if key != "excited"},
        "open_loop": {"volts_per_hertz": {"voltage": 40, "frequency": 50, "boost": 3}, "rate": 4e3},
    },
}  # fmt: skip


def run_of(drive: Any, link: Any = None, **schedule: Any) -> Any:
    """A joint that follows a sine, its drive alone or on a link."""
    schedule = {"step": "1 ms", "duration": "0.1 s", "integrator": "rk4", "substeps": 40, **schedule}
    controllers = [
        {
            "name": "motion",
            "type": "feedforward_pd",
            "kp": 100,
            "kd": 10,
            "trajectory": {"type": "sine", "amplitude": [0.5], "frequency": [4.0]},
        }
    ]
    rig: dict[str, Any] = {"mechanism": {"gravity": [0, 0, 0], "bodies": BODIES}, "schedule": schedule}
    rig |= {} if link is None else {"supplies": {"link": link}}
    actuator = {**drive, **({} if link is None else {"supply": "link"})}
    return Rig.from_dict({**rig, "joints": {"arm": {"actuator": actuator}}, "controllers": controllers}).run()


def drive_of(name: str, **control: Any) -> dict[str, Any]:
    given = DRIVES[name]
    own = {"bandwidth": 300, "current_limit": 12, "inverter": INVERTER, **given.get("control", {}), **control}
    motor = {"inertia": 4e-3, **given["motor"]}
    return {"type": "drive", "gears": [{"ratio": 5}], "powers": True, **given, "motor": motor, "control": own}


@pytest.mark.parametrize("name", DRIVES)
def test_a_drive_on_a_stiff_link_is_the_one_without_a_supply(name: str) -> None:
    """On a battery without resistance to speak of."""
    battery = {"type": "battery", "capacity": "1e6 A*h", "charges": [0, 1], "voltages": [100, 100], "resistance": 1e-6}
    drive = drive_of(name, voltage_limit=30.0)
    # an open leg has the time constant L / (1000 R)
    steps = {"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-9} if "bldc" in name else {}
    alone, on = run_of(drive, **steps), run_of(drive, {"source": battery, "capacitance": 1e6}, **steps)
    for signal in ("position", "velocity", "effort", "motor_torque", "electrical_power", "copper_energy"):
        values = alone[f"arm/{signal}"]
        assert on[f"arm/{signal}"] == pytest.approx(values, abs=1e-6 * np.ptp(values)), signal
    assert np.ptp(alone["arm/position"]) > 0.03


WEAK = {"source": {"type": "diode_bridge", "voltage": 60, "resistance": 1.5}, "capacitance": 1.5e-3}
CHOPPER = {"threshold": 64, "off_threshold": 61.5, "resistance": 10}
# integrator and its options -> largest relative residual
SCHEDULES: dict[str, tuple[dict[str, Any], float]] = {
    "rk4": ({"integrator": "rk4", "substeps": 160}, 1e-8),
    "rodas4": ({"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-10}, 1e-8),
    "rosenbrock": ({"integrator": "rosenbrock", "substeps": 160}, 1e-4),
}


def two_on_a_link(first: Any, second: Any, schedule: Any, **others: Any) -> Rig:
    """Joints that swing against each other fast, on a link that gives way."""
    bodies = [{**BODIES[0], "name": name, "parent": "base", "joint": name} for name in ("first", "second")]
    controllers = [
        {
            "name": "motion", "type": "feedforward_pd", "kp": 200, "kd": 20,
            "trajectory": {"type": "sine", "amplitude": [1.0, -0.8], "frequency": [3.0, 2.5]},
        }
    ]  # fmt: skip
    joints = {"first": {"actuator": {**first, "supply": "link"}}, "second": {"actuator": {**second, "supply": "link"}}}
    rig = {"mechanism": {"gravity": [0, 0, 0], "bodies": bodies}, "supplies": {"link": {**WEAK, "chopper": CHOPPER}}}
    schedule = {"step": "1 ms", "duration": "0.3 s", **schedule}
    return Rig.from_dict({**rig, "joints": joints, "controllers": controllers, "schedule": schedule, **others})


@pytest.mark.parametrize("integrator", SCHEDULES)
def test_drives_of_several_rates_on_a_link_close_the_balance_of_energy(integrator: str) -> None:
    schedule, bound = SCHEDULES[integrator]
    names = ("a pmsm with all loops and an encoder", "a dc_machine with effort loops")
    first, second = (drive_of(name, current_limit=40.0) for name in names)
    second["loops"] = {"mode": "effort", "current": {"rate": 5e3, "delay": 0}}
    run = two_on_a_link(first, second, schedule).run()
    assert abs(run.summary["energy"]["residual_relative"]) < bound
    u = run["link/voltage"]
    assert u.min() < 45.0 and u.max() > 62.0  # it gives way, and is charged by the brake
    assert run["first/voltage_limit"] == pytest.approx(u / np.sqrt(3.0), rel=1e-12)
    assert run["second/voltage_limit"] == pytest.approx(u, rel=1e-12)
    amplitude = np.hypot(run["first/voltage_d"], run["first/voltage_q"])
    assert np.max(amplitude / u) <= (1.0 + 1e-9) / np.sqrt(3.0) and np.max(amplitude / u) > 0.5


def test_a_drive_on_a_link_is_switched_off_with_its_brake() -> None:
    """As a drive alone is: the event, the signal of the brake, and the joint at rest."""
    first, second = {**drive_of("a pmsm with a brake"), "brake": {"effort": 60}}, drive_of("a pmsm")
    events = [{"name": "off", "when": {"signal": "second/position", "below": -0.3}, "do": "disable", "of": "first"}]
    schedule, _ = SCHEDULES["rodas4"]
    run = two_on_a_link(first, second, schedule, events=events).run()
    closed = run["first/brake"]
    off = run.t[np.argmax(run["second/position"] < -0.3)]
    opens, closes = run.t[np.flatnonzero(np.diff(closed))]
    assert opens == pytest.approx(0.05, abs=2e-3) and closes == pytest.approx(off + 0.03, abs=2e-3)
    assert closed[-1] == 1.0 and abs(run["first/velocity"][-1]) < 1e-9 < abs(run["second/velocity"][-1])


@pytest.mark.parametrize("name", DRIVES)
def test_a_drive_that_is_on_while_its_link_is_charged_from_nothing_closes_the_balance_of_energy(name: str) -> None:
    """It draws the link nowhere below 0."""
    source = {"type": "diode_bridge", "voltage": 60, "resistance": 1.5, "precharge": 20, "closes": 54}
    schedule, bound = SCHEDULES["rodas4"]
    run = run_of(drive_of(name), {"source": source, "capacitance": 1.5e-3, "voltage": 0}, **schedule)
    assert abs(run.summary["energy"]["residual_relative"]) < bound
    assert run["link/voltage"].min() == 0.0 and run["link/voltage"].max() > 5.0


@pytest.mark.parametrize("knows", [True, False])
def test_a_sampled_loop_winds_up_no_integral_at_a_sag(knows: bool) -> None:
    """The winding R i + L di/dt = u − e between samples has a closed form; the inverter cuts u to the link."""
    control = CurrentControl(300.0, current_limit=40.0)
    loop = SampledCurrentLoop(dc_machine.windings(MACHINE, control), control, CurrentLoop(8e3, 0))
    speed, wanted, current, state, found = 90.0, 10.0, 0.0, loop.initial(), list[float]()
    decay = np.exp(-MACHINE.resistance / MACHINE.inductance / 8e3)
    for sample in range(1600):
        link = float(sagging(sample / 8e3))
        limits = PhaseLimits(40.0, link if knows else 1e9, link)
        torque = 0.6 * wanted
        state |= loop.sampled(state, {"winding.flow": current}, torque, 0.0, speed, limits)
        given = np.clip(float(state["voltage"]), -link, link)
        steady = (given - 0.6 * speed) / MACHINE.resistance
        current = steady + (current - steady) * decay
        found.append(current)
    assert min(found) < -5.0 and found[-1] == pytest.approx(wanted, rel=1e-3 if knows else 0.2)
    after = np.max(found[round(BACK * 8e3) :]) - wanted
    assert after < 0.02 * wanted if knows else after > 0.2 * wanted
