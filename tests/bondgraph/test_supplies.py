"""DC links: sources, capacitor, chopper and the inverters of several drives, against closed forms and equations by
hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import Rig
from cosim.core import ops
from cosim.core.errors import InputErrors, RunWarning
from cosim.mechanics.bondgraph import BondGraph, Law, Se, Sf, assemble
from cosim.mechanics.bondgraph.components import active_front_end, battery, dc_link, dc_machine, diode_bridge, pmsm
from cosim.mechanics.bondgraph.components._bridge import InverterBridge
from cosim.mechanics.bondgraph.graph import DcSource
from cosim.plugins.actuators._supplied_drives import on_link
from cosim.rig.run.run import StoppedRun
from tests.bondgraph.simulation import Simulation
from tests.kit.messages import Said
from tests.kit.refusals import raised

BRIDGE = DcSource("diode_bridge", diode_bridge, diode_bridge.Params(300.0, 2.0))
FRONT_END = DcSource("active_front_end", active_front_end, active_front_end.Params(320.0, 8.0, 4.0))
BATTERY = DcSource("battery", battery, battery.Params(20.0, (0.0, 0.2, 1.0), (240.0, 290.0, 310.0), 1.5, charge=0.5))
SOURCES = {"diode_bridge": BRIDGE, "active_front_end": FRONT_END, "battery": BATTERY}
CHOPPER = dc_link.Chopper(340.0, 25.0, 12.0)
CAPACITANCE = 1.5e-3


def loaded(source: DcSource, load: Law, **others: Any) -> BondGraph:
    """A link, and a source of flow that takes its current from it."""
    graph = BondGraph(inputs={"t_load": "A"})
    graph.include("link", dc_link.build(dc_link.Params(source, CAPACITANCE, **others)))
    graph.add("load", Sf("electrical", load))
    graph.bond("load", "link.bus")
    return graph


def load_current(t: float) -> float:
    """A motor that accelerates and brakes."""
    return 6.0 * np.sin(9.0 * t)


def by_hand(source: DcSource) -> Callable[[float, Any], list[float]]:
    """Of the voltage of the link and the charge that the source has given."""
    p = source.params

    def current(u: float, given: float) -> float:
        if source is BRIDGE:
            return max(300.0 - u, 0.0) / 2.0
        if source is FRONT_END:
            return 8.0 * float(np.clip((320.0 - u) / 4.0, -1.0, 1.0))
        state = p.charge - given / p.capacity
        return (float(np.interp(state, p.charges, p.voltages)) - u) / p.resistance

    def rates(t: float, x: Any) -> list[float]:
        u, given = x
        i = current(u, given)
        chopped = float(np.clip((u - 340.0) / 12.0, 0.0, 1.0)) * u / 25.0
        return [(i - chopped - load_current(t)) / CAPACITANCE, i]

    return rates


@pytest.mark.parametrize("name", SOURCES)
def test_a_link_under_a_load_that_brakes_follows_its_equations_by_hand(name: str) -> None:
    source, t = SOURCES[name], np.linspace(0.0, 0.7, 200)
    graph = loaded(source, Law(lambda load: -load, ("t_load",)), chopper=CHOPPER)
    simulated = Simulation(
        assemble(graph), t, lambda t: {"t_load": load_current(t)}, method="DOP853", rtol=1e-10, max_step=1e-3
    )
    u = simulated["link.capacitor.displacement"] / CAPACITANCE
    start = [source.params.nominal, 0.0]
    expected = solve_ivp(by_hand(source), (0.0, t[-1]), start, t_eval=t, rtol=1e-11, atol=1e-12, max_step=1e-3)
    assert u == pytest.approx(expected.y[0], rel=1e-8)
    assert np.ptp(u) > 5.0
    assert simulated.energy_gap() < 1e-9


def test_a_precharge_charges_as_resistance_and_capacitor_do() -> None:
    """u = U_0 (1 − exp(−t / R C)) with both resistances up to where the first one is bridged."""
    bridge = diode_bridge.Params(300.0, 2.0, precharge=98.0, closes=280.0)
    graph = loaded(DcSource("diode_bridge", diode_bridge, bridge), Law(lambda _: 0.0, ("t_load",)), voltage=0.0)
    t = np.linspace(0.0, 0.38, 14)
    found = Simulation(assemble(graph), np.append(t, 0.5), lambda _: {"t_load": 0.0}, rtol=1e-9)
    u = found["link.capacitor.displacement"] / CAPACITANCE
    assert u[:-1] == pytest.approx(300.0 * (1.0 - np.exp(-t / (100.0 * CAPACITANCE))), rel=1e-6, abs=1e-6)
    assert u[-1] == pytest.approx(300.0, rel=1e-6)  # 2 Ω are fast
    assert found.dissipated[-1] == pytest.approx(0.5 * CAPACITANCE * 300.0**2, rel=1e-6)


@pytest.mark.parametrize(("current", "band", "near"), [(4.0, 10.0, 0.01), (0.2, 1.0, 0.1)])
def test_a_chopper_with_hysteresis_switches_as_often_as_its_closed_form(
    current: float, band: float, near: float
) -> None:
    """A current I charges the capacitor in t_off = C b / I, and with the resistor it is discharged in
    t_on = R C ln((U_on − R I) / (U_off − R I)); the relay is late by its time constant times ln 2. A small current,
    that the resistor balances before the relay is half on, does not keep the link at the threshold."""
    late, lower = 2e-5 * np.log(2.0), 340.0 - band
    chopper = dc_link.Chopper(340.0, 25.0, off_threshold=lower, switching_time=2e-5)
    graph = loaded(BRIDGE, Law(lambda load: -load, ("t_load",)), chopper=chopper, voltage=340.0 - band / 2.0)
    t = np.linspace(0.0, 0.1, 20_001)
    found = Simulation(assemble(graph), t, lambda t: {"t_load": -current}, method="DOP853", rtol=1e-8, max_step=1e-5)
    u = found["link.capacitor.displacement"] / CAPACITANCE
    on = found["link.switch.state.displacement"] > 0.5
    above, below = 340.0 + current * late / CAPACITANCE, lower - (lower / 25.0 - current) * late / CAPACITANCE
    assert np.max(u) == pytest.approx(above, abs=0.1) and np.min(u[t > 0.02]) == pytest.approx(below, abs=0.1)
    cycle = CAPACITANCE * (above - below) / current
    cycle += 25.0 * CAPACITANCE * np.log((above - 25.0 * current) / (below - 25.0 * current))
    starts = t[1:][np.diff(on.astype(int)) > 0]
    assert len(starts) > 10 and np.mean(np.diff(starts)) == pytest.approx(cycle, rel=near)
    assert found.energy_gap() < 1e-9


def test_the_energy_in_a_battery_is_the_integral_of_its_voltage() -> None:
    charges, voltages = (0.1, 0.4, 0.9), (200.0, 260.0, 280.0)
    s = np.linspace(0.0, 1.0, 100_001)
    expected = np.concatenate(
        [[0.0], np.cumsum(np.convolve(np.interp(s, charges, voltages), [0.5, 0.5], "valid")) * 1e-5]
    )
    for k in (0, 5_000, 20_000, 60_000, 95_000, 100_000):
        assert battery.integral(s[k], charges, voltages) == pytest.approx(expected[k], rel=1e-9)


# --- inverters ---

MACHINE = dc_machine.Params(0.8, 3e-3, inertia=4e-3, torque_constant=0.6, viscous=1e-3)
SERVO = pmsm.Params(4, 0.5, 2.0e-3, 3.0e-3, 0.1, inertia=4e-3, viscous=1e-3)
# the voltage falls while it is wanted to be larger than the link's
WEAK = dc_link.Params(DcSource("diode_bridge", diode_bridge, diode_bridge.Params(100.0, 2.5)), CAPACITANCE)


def on_a_link(motor: BondGraph, link: dc_link.Params, bridge: InverterBridge, laws: Mapping[str, Law]) -> BondGraph:
    """A motor with voltages by laws of the time, on an inverter."""
    for name, law in laws.items():
        motor.add(name, Se("electrical", law))
    motor.bond("u_d" if "u_d" in laws else "u", "mesh_d" if "u_d" in laws else "mesh")
    if "u_q" in laws:
        motor.bond("u_q", "mesh_q")
    motor.ports = {"shaft": "rotor"}
    graph = BondGraph()
    graph.include("link", dc_link.build(link))
    graph.include("motor", on_link(motor, bridge, 1.0))
    graph.bond("motor.link", "link.bus")
    return graph


def test_a_motor_on_a_link_that_gives_way_follows_its_equations_by_hand() -> None:
    law = Law(lambda t: 140.0 * ops.sin(8.0 * t), ("t",))
    graph = on_a_link(dc_machine.build(MACHINE), WEAK, dc_machine.BRIDGE, {"u": law})
    t = np.linspace(0.0, 0.8, 200)
    found = Simulation(assemble(graph), t, method="DOP853", rtol=1e-10, max_step=1e-3)

    def rates(t: float, x: Any) -> list[float]:
        u, i, w = x
        applied = float(np.clip(140.0 * np.sin(8.0 * t), -u, u))
        given = max(100.0 - u, 0.0) / 2.5 - applied * i / u
        return [given / CAPACITANCE, (applied - 0.8 * i - 0.6 * w) / 3e-3, (0.6 * i - 1e-3 * w) / 4e-3]

    expected = solve_ivp(rates, (0.0, 0.8), [100.0, 0.0, 0.0], t_eval=t, rtol=1e-11, atol=1e-12, max_step=1e-3).y
    names = {"link.capacitor.displacement": CAPACITANCE, "motor.winding.flow": 1.0, "motor.inertia.flow": 1.0}
    for (name, factor), values in zip(names.items(), expected, strict=True):
        assert found[name] / factor == pytest.approx(values, abs=1e-8 * np.ptp(values)), name
    assert expected[0].min() < 80.0 and expected[0].max() > 105.0  # it gives way, and is charged by the brake
    assert found.energy_gap() < 1e-9


def test_three_phases_get_at_most_the_link_over_the_root_of_three() -> None:
    laws = {f"u_{axis}": Law(lambda t, u=u: u + 0.0 * t, ("t",)) for axis, u in (("d", 30.0), ("q", 400.0))}
    graph = on_a_link(pmsm.build(SERVO), WEAK, pmsm.BRIDGE, laws)
    found = Simulation(assemble(graph), [0.0, 0.05], method="DOP853", rtol=1e-10)
    known, assembly = found.known(), found.assembly
    link = float(found["link.capacitor.displacement"][-1] / CAPACITANCE)
    d, q = (pmsm.per_phase(float(assembly.effort(f"motor.u_{axis}", known))) for axis in "dq")
    assert np.hypot(d, q) == pytest.approx(link / np.sqrt(3.0), rel=1e-9)
    assert d / q == pytest.approx(30.0 / 400.0)
    currents = (float(found[f"motor.winding_{axis}.flow"][-1]) for axis in "dq")
    taken = float(assembly.flow_of("motor.intake", known))
    assert -link * taken == pytest.approx(
        pmsm.SCALE * sum(u * i for u, i in zip((d, q), currents, strict=True)), rel=1e-9
    )
    assert found.energy_gap() < 1e-8


# --- rigs ---

INVERTER = {
    "dead_time": 0,
    "switching_frequency": 16e3,
    "supply_voltage": 100,
    "on_voltage": 0.8,
    "switching_time": 1e-7,
}
DRIVE = {
    "type": "drive",
    "motor": {"type": "dc_machine", "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.6, "inertia": 4e-3},
    "control": {"bandwidth": 200, "current_limit": 20, "inverter": INVERTER},
    "gears": [{"ratio": 5}],
    "supply": "link",
    "powers": True,
}
LINK = {"source": {"type": "diode_bridge", "voltage": 100, "resistance": 2.5}, "capacitance": CAPACITANCE}
BODIES = [
    {"name": name, "parent": "base", "joint": name, "axis": [0, 0, 1], "mass": 1, "inertia": [1, 1, 0.4]}
    for name in ("first", "second")
]


def rig_of(drive: Any = DRIVE, link: Any = LINK, **others: Any) -> Rig:
    controllers = [
        {
            "name": "motion",
            "type": "feedforward_pd",
            "kp": 200,
            "kd": 20,
            "trajectory": {"type": "sine", "amplitude": [2.0, -1.5], "frequency": [1.0, 1.3]},
        }
    ]
    schedule = {"step": "1 ms", "duration": "0.4 s", "integrator": "rk4", "substeps": 4}
    rig = {"mechanism": {"gravity": [0, 0, 0], "bodies": BODIES}, "supplies": {"link": link}, "schedule": schedule}
    return Rig.from_dict({**rig, "joints": {"all": {"actuator": drive}}, "controllers": controllers, **others})


# integrator and its options -> largest relative residual
SCHEDULES: dict[str, tuple[dict[str, Any], float]] = {
    "rk4": ({"integrator": "rk4", "substeps": 40}, 1e-8),
    "rodas4": ({"integrator": "rodas4", "substeps": "auto", "tolerance": 1e-10}, 1e-8),
    "rosenbrock": ({"integrator": "rosenbrock", "substeps": 40}, 1e-4),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("integrator", SCHEDULES)
def test_drives_on_a_link_close_the_balance_of_energy(name: str, integrator: str) -> None:
    source: dict[str, Any] = {
        "diode_bridge": LINK["source"],
        "active_front_end": {"type": "active_front_end", "voltage": 100, "current_limit": 30},
        "battery": {
            "type": "battery", "capacity": "2 A*h", "charges": [0, 1], "voltages": [90, 110], "resistance": 0.3,
        },
    }[name]  # fmt: skip
    link = {**LINK, "source": source, "chopper": {"threshold": 115, "resistance": 10}}
    schedule, bound = SCHEDULES[integrator]
    run = rig_of(link=link, schedule={"step": "1 ms", "duration": "0.6 s", **schedule}).run()
    assert abs(run.summary["energy"]["residual_relative"]) < bound
    # each inverter takes the power of its motor
    u = run["link/voltage"]
    for joint in ("first", "second"):
        i = run[f"{joint}/current"]
        switched = 16e3 * 1e-7 * 2.0 * i * i / np.hypot(i, 0.05) * u
        conducted = 2.0 * 0.8 * i * i / np.hypot(i, 0.05)
        power = run[f"{joint}/voltage"] * i + switched
        assert u * run[f"{joint}/supply_current"] == pytest.approx(power, abs=1e-9 * np.ptp(power))
        assert run[f"{joint}/inverter_loss"] == pytest.approx(switched + conducted, abs=1e-9 * np.ptp(power))
    assert (run["link/current"].min() < -0.1) == (name != "diode_bridge")
    powers, energy = run.summary["powers"], run.summary["energy"]
    lost = {
        owner: {part: of[part] for part in of if part not in ("electrical", "returned")} for owner, of in powers.items()
    }
    assert sum(sum(of.values()) for of in lost.values()) == pytest.approx(energy["dissipated"], rel=1e-9)
    if name != "battery":
        assert powers["link"]["electrical"] == pytest.approx(energy["work_in"], rel=1e-9)


# type -> (the motor, and Σ u i of its signals -> electrical power)
OTHER_MOTORS: dict[str, tuple[dict[str, Any], float]] = {
    "stepper": ({"teeth": 10, "resistance": 0.8, "inductance": 3e-3, "torque_constant": 0.9, "inertia": 4e-3}, 1.0),
    "bldc": ({"pole_pairs": 2, "resistance": 0.8, "inductance": 2e-3, "back_emf": 0.3, "inertia": 4e-3}, 1.0),
    "linear_motor": (
        {"pole_pitch": 0.06, "force_constant": 40, "resistance": 0.8, "inductance_d": 2e-3, "inductance_q": 3e-3}, 1.5,
    ),
    "induction_machine": (
        {"pole_pairs": 2, "stator_resistance": 0.8, "rotor_resistance": 0.5, "magnetising_inductance": 30e-3}
        | {"stator_leakage": 1e-3, "rotor_leakage": 1e-3, "inertia": 4e-3, "flux": 0.3, "excited": True}, 1.5,
    ),
}  # fmt: skip


# type -> (names of its phases or axes, Σ |i| of its half bridges per amplitude, square of the amplitude per Σ i²,
# the largest of its voltages per voltage of the link)
HALF_BRIDGES: dict[str, tuple[str, float, float, float]] = {
    "stepper": ("ab", 8.0 / np.pi, 1.0, 1.0),
    "bldc": ("abc", 2.0, 0.5, 0.5),
    "linear_motor": ("dq", 6.0 / np.pi, 1.0, 1.0 / np.sqrt(3.0)),
    "induction_machine": ("dq", 6.0 / np.pi, 1.0, 1.0 / np.sqrt(3.0)),
}


@pytest.mark.parametrize("name", OTHER_MOTORS)
def test_other_motors_take_their_power_from_the_link(name: str) -> None:
    """As asked for more than its voltage gives, too."""
    motor, phases = OTHER_MOTORS[name]
    linear = name == "linear_motor"
    drive = {**DRIVE, "motor": {"type": name, **motor}, "gears": [] if linear else DRIVE["gears"]}
    bodies = [{**body, "type": "prismatic" if linear else "revolute"} for body in BODIES]
    schedule = {"step": "1 ms", "duration": "0.5 s", "integrator": "rodas4", "substeps": "auto", "tolerance": 1e-10}
    link = {**LINK, "chopper": {"threshold": 115, "resistance": 10}}
    mechanism = {"gravity": [0, 0, 0], "bodies": bodies}
    run = rig_of(
        drive, {**link, "source": {**LINK["source"], "voltage": 30}}, mechanism=mechanism, schedule=schedule
    ).run()
    assert abs(run.summary["energy"]["residual_relative"]) < 1e-8
    names, changes, square, largest = HALF_BRIDGES[name]
    u = run["link/voltage"]
    for joint in ("first", "second"):
        voltages, currents = (np.array([run[f"{joint}/{of}_{k}"] for k in names]) for of in ("voltage", "current"))
        amplitude = np.sqrt(square * np.sum(currents**2, axis=0))
        switched = 16e3 * 1e-7 * changes * amplitude**2 / np.hypot(amplitude, 0.05) * u
        power = phases * np.sum(voltages * currents, axis=0) + switched
        assert u * run[f"{joint}/supply_current"] == pytest.approx(power, abs=1e-9 * np.ptp(power))
        sizes = np.max(np.abs(voltages), axis=0) if name == "bldc" else np.hypot(*voltages)
        assert np.max(sizes / u) == pytest.approx(largest, rel=1e-6)


def test_drives_start_with_the_velocity_of_their_joints() -> None:
    stiff = {**DRIVE, "gears": [{"ratio": 5, "stiffness": 4000, "damping": 1}]}
    joints = {
        "all": {"actuator": stiff},
        "first": {"initial": {"velocity": 2.0}},
        "second": {"initial": {"velocity": -1}},
    }
    run = rig_of(joints=joints, controllers=None).run()
    assert run["first/motor_speed"][0] == pytest.approx(10.0) and run["second/motor_speed"][0] == pytest.approx(-5.0)


STIFF = {"type": "diode_bridge", "voltage": 100, "resistance": 0.2}
SMALL = {"source": STIFF, "capacitance": 2e-4}
BURNS = {"threshold": 110, "resistance": 5}
# name -> a link, and how many warnings of it a run has
RANGES: dict[str, tuple[dict[str, Any], int]] = {
    "no chopper": (SMALL, 1),
    "a capacitor that takes it all": ({**SMALL, "capacitance": 0.1}, 0),
    "a link that withstands it": ({**SMALL, "largest_voltage": 1e4}, 0),
    "above its largest voltage": ({**SMALL, "chopper": BURNS, "largest_voltage": 110.5}, 1),
    "a chopper that holds it": ({**SMALL, "chopper": BURNS}, 0),
    "a chopper that is always on": ({**SMALL, "chopper": {**BURNS, "resistance": 100}}, 1),
    "both": ({**SMALL, "chopper": {**BURNS, "resistance": 100}, "largest_voltage": 150}, 2),
    "below its lowest voltage": ({**SMALL, "capacitance": 0.1, "lowest_voltage": 99.9}, 1),
    "below half its source": ({**SMALL, "chopper": BURNS, "source": {**STIFF, "resistance": 4}}, 1),
    "charged in the run": ({**SMALL, "capacitance": 0.1, "voltage": 20}, 0),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_run_warns_of_a_link_that_leaves_its_range(name: str, said: Said) -> None:
    """Whatever the rig keeps, as the summary has the range."""
    link, count = RANGES[name]
    schedule = {"step": "1 ms", "duration": "0.4 s", "integrator": "rodas4", "substeps": "auto"}
    rig = rig_of(link=link, schedule=schedule)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)
        run, final = rig.run(), rig.run(keep="final")
    u, found = run["link/voltage"], run.summary["supplies"]["link"]
    assert (found["voltage_start"], found["voltage_min"], found["voltage_max"]) == (u[0], u.min(), u.max())
    assert found["t_max_s"] == pytest.approx(run.t[u.argmax()])
    assert final.summary["supplies"] == run.summary["supplies"] and final.warnings == run.warnings
    assert len(run.warnings) == count
    if count:
        said("\n".join(run.warnings))


TRIPS: dict[str, dict[str, Any]] = {
    "above": {**SMALL, "largest_voltage": 120, "trip": True},
    "below": {**SMALL, "capacitance": 0.1, "lowest_voltage": 99.9, "trip": True},
}


@pytest.mark.parametrize("name", TRIPS)
def test_a_link_that_trips_stops_the_run_where_it_leaves_its_range(name: str, said: Said) -> None:
    """In the tick in which the voltage of the same run without trip is beyond the bound first; up to there they are
    the same, and with wider bounds nothing happens."""
    link = TRIPS[name]
    schedule = {"step": "1 ms", "duration": "0.4 s", "integrator": "rodas4", "substeps": "auto"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)
        free = rig_of(link={**link, "trip": False}, schedule=schedule).run()
        with pytest.raises(StoppedRun) as stopped:
            rig_of(link=link, schedule=schedule).run()
        wide = rig_of(link={**SMALL, "capacitance": 0.1, "largest_voltage": 1e4, "trip": True}, schedule=schedule).run()
    u = free["link/voltage"]
    beyond = u > link["largest_voltage"] if name == "above" else u < link["lowest_voltage"]
    first = int(np.argmax(beyond))
    assert beyond.any() and not wide.fault
    run = stopped.value.run
    said(run.fault)
    assert len(run.t) == first + 1 and run["link/voltage"] == pytest.approx(u[: first + 1], rel=1e-12)


def test_a_trip_in_a_graph_is_refused(said: Said) -> None:
    link = dc_link.Params(
        DcSource("diode_bridge", diode_bridge, diode_bridge.Params(100.0, 0.2)), 1e-3, trip=True, largest_voltage=150.0
    )
    with pytest.raises(ValueError) as refused:
        dc_link.build(link)
    said(str(refused.value))


MISTAKES: dict[str, dict[str, Any]] = {
    "an unknown supply": {"drive": {**DRIVE, "supply": "lin"}},
    "nothing on it": {"drive": {**DRIVE, "supply": None}},
    "the name of a joint": {"supplies": {"first": LINK}, "drive": {**DRIVE, "supply": "first"}},
    "samples that are too slow for its current": {
        "drive": {**DRIVE, "loops": {"mode": "effort", "current": {"rate": 1e3}}}
    },
    "a machine without magnets": {
        "drive": {
            **DRIVE,
            "motor": {
                **{key: value for key, value in DRIVE["motor"].items() if key != "torque_constant"},
                **{"excitation": 0.2, "field_resistance": 50, "field_inductance": 2},
            },
        }
    },
    "a ripple": {"drive": {**DRIVE, "control": {"inverter": {**INVERTER, "switched": True}}}},
    "a chopper that is always on": {"link": {**LINK, "chopper": {"threshold": 90, "resistance": 10}}},
    "a chopper that switches off above where it switches on": {
        "link": {**LINK, "chopper": {"threshold": 120, "off_threshold": 125, "resistance": 10}}
    },
    "a chopper with a band and a hysteresis": {
        "link": {**LINK, "chopper": {"threshold": 120, "off_threshold": 115, "band": 5, "resistance": 10}}
    },
    "a chopper that does not switch off": {
        "link": {**LINK, "chopper": {"threshold": 120, "off_threshold": 95, "resistance": 10}}
    },
    "a battery that falls with its charge": {
        "link": {
            "source": {"type": "battery", "capacity": 3600, "charges": [0, 1], "voltages": [52, 48], "resistance": 0.1},
            "capacitance": 1e-3,
        }
    },
    "an unknown source": {"link": {**LINK, "source": {"type": "grid"}}},
    "no source": {"link": {**LINK, "source": None}},
    "a source without type": {"link": {**LINK, "source": {}}},
    "a source that is no text": {"link": {**LINK, "source": {"type": 5}}},
    "a source that feeds no link": {"link": {**LINK, "source": {"type": "gear_stage", "ratio": 3}}},
    "no motor": {"drive": {**DRIVE, "motor": None}},
    "a drive of the other domain": {"drive": {**DRIVE, "gears": [{"type": "ball_screw", "lead": 0.01}]}},
    "a largest voltage below the source's": {"link": {**LINK, "largest_voltage": 90}},
    "a largest voltage below the chopper": {
        "link": {**LINK, "largest_voltage": 120, "chopper": {"threshold": 130, "resistance": 10}}
    },
    "a lowest voltage above the source's": {"link": {**LINK, "lowest_voltage": 110}},
    "a lowest voltage of a link that is charged": {"link": {**LINK, "voltage": 0, "lowest_voltage": 80}},
    "multirate": {"schedule": {"step": "1 ms", "integrator": "multirate"}},
    "a trip without a bound": {"link": {**LINK, "trip": True}},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_supplies(name: str, said: Said) -> None:
    said(raised(InputErrors, rig_of, **MISTAKES[name]), name)
