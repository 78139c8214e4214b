"""The drive out of components, and the sample rigs of drives."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim import Rig, load_rig
from cosim.core.errors import InputError
from cosim.mechanics.bondgraph.components import dc_machine, gear_stage, pmsm, shaft
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, PhaseLimits
from cosim.mechanics.bondgraph.graph import ElectricMachine, Stage
from cosim.plugins.actuators import dc_motor, drive
from tests.bondgraph.simulation import Simulation, bench
from tests.kit.messages import Said

RIGS = Path(__file__).parents[2] / "rigs/drives"
MACHINE = dc_machine.Params(0.5, 2e-3, inertia=3e-5, torque_constant=0.04)
MOTOR = {"type": "dc_machine", "resistance": 0.5, "inductance": 1e-3, "inertia": 1e-4, "torque_constant": 0.05}
INVERTER = {"dead_time": 1e-6, "switching_frequency": 16e3, "supply_voltage": 24}
SERVO = pmsm.Params(4, 0.5, 1.0e-3, 1.8e-3, 0.02, inertia=1e-3)


def test_a_rigid_drive_is_the_dc_motor_to_rounding() -> None:
    """The same machine, gear and loop, out of two parts and out of one."""
    control = CurrentControl(200.0, current_limit=3.0, voltage_limit=5.0)
    gears = (Stage("gear_stage", gear_stage, gear_stage.Params(50.0, viscous=0.7)),)
    assembled = drive.load(drive.Params(ElectricMachine("dc_machine", dc_machine, MACHINE), control, gears))
    motor = dc_motor.load(dc_motor.Params(0.5, 2e-3, 0.04, 3e-5, 5.0, 3.0, ratio=50.0, viscous=0.7))
    assert assembled.reflected_inertia == pytest.approx(motor.reflected_inertia, rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(20):
        current, request, velocity = rng.normal(size=3) * [4.0, 10.0, 3.0]
        u = {"request": request, "position": 0.3, "velocity": velocity}
        name, missing = assembled.initial(0.0, 0.0)
        dx, y = assembled.flow(0.0, assembled.params, {name: current, missing: 0.0}, u)
        assert abs(dx[missing]) < 1e-10  # the winding is as the drive knows it
        (current_of_motor,) = motor.initial(0.0, 0.0)
        dx_of_motor, y_of_motor = motor.flow(0.0, motor.params, {current_of_motor: current}, u)
        assert dx[name] == pytest.approx(dx_of_motor[current_of_motor], rel=1e-10)
        for signal in ("effort", "power", "loss", "stored", "current", "voltage"):
            assert y[signal] == pytest.approx(y_of_motor[signal], rel=1e-10), signal


def test_a_current_loop_answers_with_its_bandwidth() -> None:
    """Held shaft: i approaches its setpoint as 1 − exp(−2π f t), without limits."""
    held = bench(
        dc_machine.controlled(MACHINE, CurrentControl(150.0), 1.0), {"shaft": ("speed", "rad/s")}, request="N*m"
    )
    t = np.linspace(0.0, 5e-3, 11)
    found = Simulation(held, t, lambda _: {"speed": 0.0, "request": 0.08}, method="DOP853")
    # the resistance of the loop is compensated at the setpoint: the rate is 2π f + R/L
    rate = 2.0 * math.pi * 150.0 + 0.5 / 2e-3
    assert found["part.winding.flow"] == pytest.approx(2.0 * (1.0 - np.exp(-rate * t)), rel=1e-6, abs=1e-9)


def test_field_weakening_keeps_the_voltage_and_reaches_speeds_beyond_the_back_emf() -> None:
    """At 2 · U/(p ψ) the machine still gives torque, with i_d < 0 and voltages within the limit."""
    control = CurrentControl(400.0, current_limit=30.0, voltage_limit=20.0)
    assembly = bench(pmsm.controlled(SERVO, control, 1.0), {"shaft": ("speed", "rad/s")}, request="N*m")
    speed = 1.3 * 20.0 / (4 * 0.02)
    found = Simulation(assembly, [0.05], lambda _: {"speed": speed, "request": 0.3})
    i_d, i_q = (found[f"part.winding_{axis}.flow"][-1] / pmsm.SCALE for axis in "dq")
    assert i_d < -1.0 and 1.5 * 4 * (0.02 * i_q + (1.0e-3 - 1.8e-3) * i_d * i_q) > 0.2
    known = found.known()
    voltage = math.hypot(*(assembly.effort(f"part.inverter_{axis}", known) for axis in "dq")) / pmsm.SCALE
    assert voltage <= 20.0 * (1.0 + 1e-9)


def test_field_weakening_ends_at_a_finite_i_q() -> None:
    """More is asked for than the voltage can drive: the setpoints do not change without bound, and the largest voltage
    that the motion induces is kept."""
    control, speed, wanted = CurrentControl(400.0, 30.0, 20.0), 500.0, np.linspace(0.0, 40.0, 4001)
    limits = PhaseLimits(control.current_limit, control.voltage_limit, 0.0)
    at = [pmsm.axes(SERVO).setpoints(control, pmsm.SCALE * i, speed, limits) for i in wanted]
    i_d, i_q = np.array(at).T / pmsm.SCALE
    assert i_q.max() == pytest.approx(0.98 * 0.9 * 20.0 / (4 * speed * 1.8e-3), rel=1e-12)
    induced = 4 * speed * np.hypot(1.0e-3 * i_d + 0.02, 1.8e-3 * i_q)
    np.testing.assert_allclose(induced, 18.0, rtol=1e-12)
    assert np.abs(np.diff(i_d)).max() < 10.0 * (wanted[1] - wanted[0])


def test_a_machine_is_driven_past_the_speed_at_which_the_voltage_ends_its_torque() -> None:
    """A speed that it cannot reach: steps of chosen length, up to where friction takes the torque that is left."""
    motor = {"type": "pmsm", "pole_pairs": 4, "resistance": 0.3, "inductance_d": 2e-3, "inductance_q": 2e-3}
    drive = {
        "type": "drive",
        "motor": {**motor, "flux": 0.02, "inertia": 5e-5, "viscous": 1e-3},
        "control": {"bandwidth": 500, "current_limit": 20, "voltage_limit": 24},
    }
    goal = {"type": "quintic", "goal": 4000, "duration": 10}
    rig = {
        **one_joint_section(drive, 1e-3),
        "controllers": [{"type": "pid", "kp": 0, "ki": 0, "kd": 1, "trajectory": goal}],
        "schedule": {"step": "0.1 ms", "duration": "5 s", "integrator": "rodas4", "substeps": "auto"},
    }
    run = Rig.from_dict(rig).run()
    speed, i_q = run["hinge/motor_speed"][-1], run["hinge/current_q"][-1]
    u_d, u_q, i_d = (run[f"hinge/{name}"][-1] for name in ("voltage_d", "voltage_q", "current_d"))
    assert speed > 1.3 * 24.0 / (4 * 0.02)
    # steady but for the slow change of the speed: the equations of the machine, and the balance of its torque
    assert u_d == pytest.approx(0.3 * i_d - 4 * speed * 2e-3 * i_q, abs=0.05)
    assert u_q == pytest.approx(0.3 * i_q + 4 * speed * (2e-3 * i_d + 0.02), abs=0.05)
    accelerated = 1.05e-3 * run["hinge/acceleration"][-1]
    assert 1.5 * 4 * 0.02 * i_q == pytest.approx(1e-3 * speed + accelerated, rel=1e-3)


def test_a_strain_wave_gear_is_a_stage_of_a_drive() -> None:
    """A held effort twists it by M / k, and the motor turns by the ratio of that."""
    gear = {"type": "harmonic_drive", "ratio": 100, "stiffness": 5000, "damping": 20}
    motor = {"type": "dc_machine", "resistance": 0.5, "inductance": 1e-3, "inertia": 1e-5, "torque_constant": 0.05}
    friction = {"coulomb": 50.0, "bristle_stiffness": 1e6, "bristle_damping": 1e3}
    rig = {
        **one_joint_section({"type": "drive", "motor": motor, "gears": [gear], "friction": friction}, 0.5),
        "controllers": [
            {
                "type": "pid",
                "kp": 1e4,
                "ki": 0,
                "kd": 0,
                "trajectory": {"type": "quintic", "goal": 1e-3, "duration": 0.1},
            }
        ],
        "schedule": {"step": "0.1 ms", "duration": "1 s", "integrator": "rodas4", "substeps": "auto"},
    }
    run = Rig.from_dict(rig).run()
    turned = np.trapezoid(run["hinge/motor_speed"], run.t) / 100
    effort = 0.05 * 100 * run["hinge/current"][-1]
    assert 8.0 < effort < 12.0
    assert turned - run["hinge/position"][-1] == pytest.approx(effort / 5000, rel=0.01)


def test_a_drive_records_its_temperatures() -> None:
    """A current of 5 A at standstill: the winding rises by about i² R t / C in a short time."""
    thermal = {"winding_capacity": 20, "housing_capacity": 100, "winding_to_housing": 1, "housing_to_ambient": 2}
    motor = {"type": "dc_machine", "resistance": 1, "inductance": 1e-3, "inertia": 1e-4, "torque_constant": 0.1}
    section = one_joint_section({"type": "drive", "motor": {**motor, "thermal": thermal}}, 1.0)
    section["joints"]["hinge"]["friction"] = {"coulomb": 10.0, "model": "lugre"}
    goal = {"type": "quintic", "goal": 0.5, "duration": 0.01}
    section["controllers"] = [{"type": "pid", "kp": 1, "ki": 0, "kd": 0, "trajectory": goal}]
    section["schedule"] = {"step": "1 ms", "duration": "2 s", "integrator": "rodas4", "substeps": "auto"}
    run = Rig.from_dict(section).run()
    assert run["hinge/current"][-1] == pytest.approx(5.0, rel=5e-3)
    winding, housing = run["hinge/winding_temperature"][-1], run["hinge/housing_temperature"][-1]
    # in the second half of a second C Ṫ = R_0 (1 + α T) i² − T, from 0
    rate = (25.0 * 0.00393 - 1.0) / 20.0
    assert winding == pytest.approx(25.0 / 20.0 * math.expm1(2.0 * rate) / rate, rel=0.01)
    assert 0.0 < housing < 0.05 * winding


def test_a_component_without_a_current_loop_is_no_motor(said: Said) -> None:
    with pytest.raises(InputError) as raised:
        drive.load(drive.Params(ElectricMachine("shaft", shaft, shaft.Params(100.0))))
    said(raised.value)


def one_joint_section(actuator: dict[str, Any], inertia: float) -> dict[str, Any]:
    """A rotor without gravity, whose schedule and controllers are still open."""
    body = {"name": "link", "joint": "hinge", "axis": [0, 0, 1], "type": "continuous", "mass": 1}
    body["inertia"] = [inertia] * 3
    return {"mechanism": {"gravity": [0, 0, 0], "bodies": [body]}, "joints": {"hinge": {"actuator": actuator}}}


def one_joint(actuator: dict[str, Any], **schedule: Any) -> Any:
    body = {"name": "link", "joint": "hinge", "axis": [0, 0, 1], "mass": 1, "inertia": [0.1, 0.1, 0.5]}
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
            "joints": {"hinge": {"actuator": actuator}},
            "schedule": {"step": "1 ms", "duration": "60 s", "integrator": "rodas4", **schedule},
        }
    )


ELECTRICAL = {
    "source": {"type": "Se", "domain": "electrical", "effort": 1},
    "load": {"type": "R", "domain": "electrical", "resistance": "2 kohm"},
}
WRONG: dict[str, dict[str, Any]] = {
    "no motor": {"motor": {"type": "reluctance"}},
    "a motor without magnets": {
        "motor": {
            **{"type": "dc_machine", "resistance": 1, "inductance": 1e-3},
            **{"excitation": 0.1, "field_resistance": 10, "field_inductance": 0.1},
        }
    },
    "no gear": {"gears": [{"type": "worm", "ratio": 40}]},
    "friction as a gear": {"gears": [{"type": "friction", "coulomb": 0.5}, {"ratio": 210, "stiffness": 8}]},
    "a shaft as a gear": {"gears": [{"type": "shaft", "stiffness": 40}]},
    "more than the supply": {"control": {"voltage_limit": 60, "inverter": INVERTER}},
    "backlash at no inertia": {
        "motor": {**MOTOR, "inertia": 0},
        "gears": [{"ratio": 50, "stiffness": 80, "backlash": 0.01}],
    },
    "no inertia behind backlash": {
        "gears": [{"ratio": 50, "stiffness": 80, "backlash": 0.01}, {"ratio": 2, "stiffness": 100}]
    },
    "a joint that is electrical": {
        "type": "bond_graph",
        "graph": {"elements": {"source": ELECTRICAL["source"]}, "bonds": ["source -> joint"]},
    },
    "a graph without its joint": {
        "type": "bond_graph",
        "graph": {"junctions": {"mesh": 1}, "elements": ELECTRICAL, "bonds": ["source -> mesh -> load"]},
    },
}


@pytest.mark.parametrize("actuator", WRONG.values(), ids=WRONG)
def test_parts_that_a_drive_cannot_have(actuator: dict[str, Any], said: Said) -> None:
    with pytest.raises(InputError) as raised:
        one_joint(actuator if "graph" in actuator else {"type": "drive", "motor": MOTOR, **actuator})
    said(raised.value)


FRICTION = {"coulomb": 2.5, "static": 3.0, "bristle_stiffness": 2e4, "bristle_damping": 30.0}
HELD = {
    "type": "bond_graph",
    "graph": {
        "junctions": {"shaft": 1},
        "elements": {"load": {"type": "Se", "domain": "rotational", "law": "2.7 * min(t, 1)"}},
        "components": {"contact": {"type": "friction", **FRICTION}},
        "bonds": ["load -> shaft -> joint", "shaft -> contact.body"],
    },
}


def test_what_should_stick_does_not_creep_in_a_minute() -> None:
    """A load of 0.9 of the static friction, 60 s at 1 ms: the joint stays where the bristles hold it."""
    run = one_joint(HELD).run()
    position = run["hinge/position"]
    after = run.t > 5.0
    # before it holds it slides as far as bristles that yield more and more: x = −z_s ln(1 − z / z_s)
    assert position[-1] == pytest.approx(3.0 / 2e4 * math.log(10.0), rel=0.2)
    assert np.ptp(position[after]) < 1e-9
    smooth = {"type": "friction", "model": "smooth", "coulomb": 3.0}
    creeping = {**HELD, "graph": {**HELD["graph"], "components": {"contact": smooth}}}
    assert np.ptp(one_joint(creeping, duration="10 s").run()["hinge/position"]) > 1e-3


@pytest.mark.parametrize(("name", "bound"), [("two_stage_gear", 1e-6), ("industrial_arm", 5e-3)])
def test_the_energy_of_a_sample_rig_closes(name: str, bound: float) -> None:
    """With the steps of the sample; of the second order where they are fixed."""
    energy = load_rig(RIGS / f"{name}.yaml").run(duration=0.2).summary["energy"]
    assert energy is not None and abs(energy["residual_relative"]) < bound


def test_two_stages_start_with_impacts() -> None:
    """No torque until the backlash of each stage is crossed, one after the other; then impacts."""
    run = load_rig(RIGS / "two_stage_gear.yaml").run()
    first, second = run["shaft/first_torque"], run["shaft/second_torque"]
    begins = [run.t[np.flatnonzero(torque > 0.0)[0]] for torque in (first, second)]
    assert 0.5e-3 < begins[0] < begins[1] < 10e-3
    assert first[run.t < begins[0]].max() == 0.0 and second[run.t < begins[1]].max() == 0.0
    early = (run.t > begins[1]) & (run.t < begins[1] + 20e-3)
    assert second[early].max() > 20.0 * abs(second[-1])


def test_a_drive_that_turns_does_not_move_a_linear_joint(said: Said) -> None:
    """A torque used as a force would be a wrong number without a word."""
    body = {"name": "slide", "joint": "rail", "type": "prismatic", "axis": [0, 0, 1], "mass": 1, "inertia": [1, 1, 1]}
    with pytest.raises(InputError) as raised:
        Rig.from_dict(
            {
                "mechanism": {"bodies": [body]},
                "joints": {"rail": {"actuator": {"type": "drive", "motor": MOTOR}}},
                "schedule": {"step": "1 ms", "duration": "1 s"},
            }
        )
    said(raised.value)


def test_a_worm_in_a_drive_holds_the_joint_when_the_drive_gives_nothing() -> None:
    """A self-locking stage under a load of 30 N·m, which the current loop would not hold without a request."""
    worm = {
        "ratio": 40,
        "stiffness": 500,
        "damping": 0.5,
        "efficiency": 0.4,
        "back_efficiency": -0.5,
        "breakaway": 1e-3,
    }
    body = {"name": "link", "joint": "hinge", "axis": [0, 1, 0], "mass": 3, "com": [1, 0, 0], "inertia": [0.1, 1, 1]}
    hanging = {
        "mechanism": {"bodies": [body]},
        "joints": {"hinge": {"actuator": {"type": "drive", "motor": MOTOR, "gears": [{**worm, "bristle_time": 1e-3}]}}},
        "schedule": {"step": "1 ms", "duration": "5 s", "integrator": "rodas4", "substeps": "auto"},
    }
    run = Rig.from_dict(hanging).run()
    twist = 3 * 9.81 / 40 / 500 + 1e-3 / 1.5
    assert run["hinge/position"][-1] == pytest.approx(twist / 40, rel=1e-3)
    assert np.ptp(run["hinge/position"][run.t > 2.0]) < 1e-9


def test_a_drive_far_too_fast_for_its_step_is_a_warning() -> None:
    """Its growth in a step is beyond the largest number."""
    elements = {
        "supply": {"type": "Se", "domain": "rotational", "law": "request"},
        "rotor": {"type": "I", "domain": "rotational", "inertia": 1e-10},
        "shaft": {"type": "C", "domain": "rotational", "stiffness": 0.5},
        "damping": {"type": "R", "domain": "rotational", "resistance": 1e-3},
    }
    graph = {
        "junctions": {"w": 1, "twist": 0, "spring": 1},
        "elements": elements,
        "bonds": ["supply -> w -> rotor", "w -> twist -> spring -> shaft", "spring -> damping", "twist -> joint"],
    }
    rig = one_joint({"type": "bond_graph", "graph": graph}, integrator="rk4", substeps=64, duration="0.1 s")
    assert [warning.split(", too short")[0] for warning in rig.warnings[0]] == [
        "the drive of joint 'hinge' has a time constant of 0.1 us"
    ]


def hydraulic(**more: Any) -> dict[str, Any]:
    graph = {
        "elements": {"tank": {"type": "Se", "domain": "hydraulic", "effort": 0}},
        "components": {
            "pump": {"type": "flow_pump", "flow": "6 l/min", "leakage": "0.1 l/min/bar"},
            "line": {"type": "chamber", "volume": "0.1 l", "pressure": "2 bar"},
            "motor": {"type": "hydraulic_motor", "displacement": "6 cm^3/turn"},
        },
        "bonds": ["pump.port -> line.port", "line.port -> motor.a", "motor.b -> tank", "motor.shaft -> joint"],
    }
    return {"type": "bond_graph", "graph": graph, **more}


def test_the_pressure_at_every_port_is_a_signal() -> None:
    """Also at one that has another name inside its component."""
    run = one_joint(hydraulic(signals={"p": "pump.port.effort", "a": "motor.a.effort"}), duration="10 ms").run()
    assert run["hinge/p"][0] > 1e5
    np.testing.assert_allclose(run["hinge/p"], run["hinge/a"], rtol=1e-12)


def test_a_recorded_signal_that_is_none_is_named_where_it_stands() -> None:
    with pytest.raises(InputError) as raised:
        one_joint(hydraulic(signals={"p": "pump.prt.effort"}))
    assert str(raised.value).startswith(
        "<dict> joints.hinge.actuator.signals.p: there is no signal 'pump.prt.effort'; did you mean 'pump."
    )


SYNCHRONOUS = {"resistance": 0.5, "inductance_d": 1e-3, "inductance_q": 1e-3}
# type -> (its parameters, largest amplitude of a phase per voltage of the link)
MOTORS: dict[str, tuple[dict[str, Any], float]] = {
    "pmsm": ({**SYNCHRONOUS, "pole_pairs": 4, "flux": 0.01, "inertia": 1e-4}, 1.0 / math.sqrt(3.0)),
    "induction_machine": (
        {"pole_pairs": 2, "stator_resistance": 0.8, "rotor_resistance": 0.5, "magnetising_inductance": 30e-3}
        | {"stator_leakage": 1e-3, "rotor_leakage": 1e-3, "inertia": 1e-3, "flux": 0.02, "excited": True},
        1.0 / math.sqrt(3.0),
    ),
    "stepper": ({"teeth": 50, "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.3, "inertia": 1e-4}, 1.0),
    "dc_machine": ({key: value for key, value in MOTOR.items() if key != "type"}, 1.0),
}


@pytest.mark.parametrize("name", MOTORS)
def test_a_voltage_limit_beyond_the_inverter_is_a_doubt(name: str) -> None:
    motor, share = MOTORS[name]
    for factor in (0.99, 1.01):
        limit = factor * share * INVERTER["supply_voltage"]
        control = {"bandwidth": "50 Hz", "voltage_limit": limit, "inverter": INVERTER}
        actuator = {"type": "drive", "motor": {"type": name, **motor}, "control": control}
        if limit > INVERTER["supply_voltage"]:
            with pytest.raises(InputError, match="at most its supply_voltage"):
                one_joint(actuator)
            continue
        doubts = [line for line in one_joint(actuator).warnings[1] if "voltage_limit" in line]
        assert len(doubts) == (factor > 1.0)
        assert all(f"{limit:.4g} V is above the {limit / factor:.4g} V" in line for line in doubts)
