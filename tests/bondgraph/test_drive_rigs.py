"""The sample rigs of gears and branching drives, against published values and equations by hand."""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import Model, Rig
from cosim.cli.reference_run import settings
from cosim.mechanics.bondgraph.components import dc_machine, pmsm
from cosim.mechanics.bondgraph.components._current_control import BAND, CurrentControl, Inverter, Overload
from tests.bondgraph.simulation import Simulation, bench
from tests.kit.samples import FOLDER, few_samples

Sample = Callable[..., Rig]


def test_a_lossy_gear_sticks_and_slips_as_published(sample: Sample) -> None:
    """LossyGearDemo1 of the Modelica Standard Library 4.1.0, whose gear is rigid."""
    run = sample("drives/lossy_gear").run()
    at = np.searchsorted(run.t, np.array([0.1, 0.3, 0.4, 0.5]) - 1e-9)
    published = np.array([-0.0011168879, -0.00051731711, 0.00020835793, 1.66216872e-5])
    assert run["output/position"][at] == pytest.approx(published, abs=3e-4 * np.ptp(published))
    velocity = run["output/velocity"]
    stuck = np.abs(velocity[at]) < 1e-7
    assert np.where(stuck, 0.0, np.sign(velocity[at])).tolist() == [0.0, 1.0, 0.0, -1.0]  # the modes of the gear
    assert velocity[-1] == pytest.approx(-0.016261924, rel=3e-4)
    # stuck it holds what is between 1/η and η' of what the mesh transmits: motor torque 2 M and M / 2
    mesh, friction = run["output/mesh"], run["output/friction"]
    assert ((friction > -0.5001 * mesh) & (friction < 1.0001 * mesh))[5:].all()


def test_a_shaft_with_backlash_throws_its_inertia_as_published(sample: Sample) -> None:
    """ElastoBacklash of the Modelica Standard Library 4.1.0."""
    run = sample("drives/backlash").run()
    at = np.searchsorted(run.t, np.array([0.1, 0.25, 0.5, 1.0]) - 1e-9)
    assert run["inertia/position"][at] == pytest.approx([0.2498311, 0.5808075, -0.30993973, -0.1555704], abs=5e-5)
    assert run["inertia/velocity"][at] == pytest.approx([52.893741, 30.080733, -17.228305, -7.02293], rel=2e-5)


def test_a_dc_machine_starts_as_published(sample: Sample) -> None:
    """DCPM_Start of the Modelica Standard Library 4.1.0."""
    run = sample("drives/dc_start").run()
    at = np.searchsorted(run.t, np.array([0.5, 1.0, 2.0]) - 1e-9)
    assert run["shaft/current"][at] == pytest.approx([91.915255, 92.527382, 99.9743466], rel=1e-6)
    assert run["shaft/velocity"][at] == pytest.approx([51.63637, 149.81254, 149.2278453], rel=1e-6)


def test_the_efficiency_of_a_stage_over_its_load_has_its_closed_form(sample: Sample) -> None:
    """η = M_load / (M_load + M_0 + μ M_load), as the load rises."""
    run = sample("drives/gear_efficiency").run()
    later = run.t > 0.01  # the mesh has been wound up
    load, efficiency = run["output/load_torque"][later], run["output/efficiency"][later]
    assert load[0] < 1.0 and load[-1] == pytest.approx(40.0)
    assert efficiency == pytest.approx(load / (load + 0.45 + 0.15 * load), rel=2e-4)
    assert efficiency[0] < 0.6 and efficiency[-1] > 0.85


def two_motors(t: float, x: np.ndarray) -> list[float]:
    """Of currents, motor speeds, angles of both motors, and the speed and angle of the table."""
    i, w, angle, speed, table = x[0:2], x[2:4], x[4:6], x[6], x[7]
    voltage = np.array([4.0, 4.0] if t < 0.15 else [3.0, -3.0])
    twist = angle - 20.0 * table
    spring = 30.0 * (twist - np.clip(twist, -np.radians(1.5), np.radians(1.5)))
    damper = np.clip(0.02 * (w - 20.0 * speed), -np.abs(spring), np.abs(spring))
    mesh = 20.0 * (spring + damper)
    share = np.where(mesh * speed > 0.0, 1.04, 0.96)
    friction = 0.04 * np.abs(mesh) / share * speed / np.sqrt(speed**2 + 0.01**2)
    torque = np.sum(mesh - friction) - 0.5 * speed
    return [*(voltage - 0.4 * i - 0.05 * w) / 0.6e-3, *(0.05 * i - mesh / 20.0) / 1.5e-4, *w, torque / 2.0, speed]


def test_two_motors_on_one_load_move_as_their_equations_by_hand(sample: Sample) -> None:
    run = sample("drives/two_motors", "schedule.tolerance=1e-8").run()
    x, parts = np.zeros(8), [np.zeros((8, 1))]
    for begin, end in pairwise([0.0, 0.15, 0.5]):
        times = run.t[(run.t > begin + 1e-9) & (run.t < end + 1e-9)]
        options = {"method": "LSODA", "rtol": 1e-9, "atol": 1e-11, "max_step": 2e-3}
        span = (begin + 1e-12, times[-1] + (1e-12 if end < 0.5 else 0.0))
        found = solve_ivp(two_motors, span, x, t_eval=times, **options)
        x = found.y[:, -1]
        parts.append(found.y)
    by_hand = np.hstack(parts)
    expected = {"position": by_hand[7], "velocity": by_hand[6]}
    expected |= {f"{name}_twist": by_hand[4 + k] - 20.0 * by_hand[7] for k, name in enumerate(("first", "second"))}
    for name, values in expected.items():
        assert run[f"table/{name}"] == pytest.approx(values, abs=2e-4 * np.ptp(values)), name
    # from the first impacts on, the first stage stays on its side; the second crosses to the other
    first, second = run["table/first_torque"], run["table/second_torque"]
    after = run.t > 0.2
    assert first[after].min() > 0.2 and second[after].max() < -0.3


SIDES = np.array([[1.0, 1.0], [1.0, -1.0]])  # speeds of the side gears by pitch and roll


def wrist_by_hand(links: Model, t: float, x: np.ndarray) -> np.ndarray:
    """Of q, v, and by motor current, speed and twist of the mesh."""
    q, v, i, w, twist = x.reshape(5, 2)
    voltage = np.array([4.0 * np.sin(6.0 * t), 3.0])
    side = SIDES @ v
    mesh = 60.0 * (0.5 * twist + 1e-4 * (w - 60.0 * side))
    # of the friction with μ = 0.1, the share where the motor drives; below the creep speed it passes from 0 to 1
    driving = 0.5 + 0.5 * np.sign(mesh) * np.clip(side / 0.01, -1.0, 1.0)
    per_load = driving * 0.1 / 1.1 + (1.0 - driving) * 0.1 / 0.9
    torque = mesh - per_load * np.abs(mesh) * side / np.hypot(side, 0.01)
    # the side gears of 1e-4 kg m² turn with both joints
    mass = links.mass_matrix(q) + 1e-4 * SIDES.T @ SIDES
    a = np.linalg.solve(mass, SIDES.T @ torque - links.inverse_dynamics(q, v, np.zeros(2)))
    return np.concatenate(
        [v, a, (voltage - 0.5 * i - 0.03 * w) / 4e-4, (0.03 * i - mesh / 60.0) / 5e-6, w - 60.0 * side]
    )


def test_a_differential_wrist_moves_as_its_equations_by_hand(sample: Sample) -> None:
    laws = (f"bond_graphs.wrist.graph.elements.supply_{k}.law={law}" for k, law in (("a", "4*sin(6*t)"), ("b", "3")))
    rig = sample("drives/differential_wrist", *laws, "schedule.tolerance=1e-9", "schedule.duration=0.5", "controllers=")
    links = Model(rig.spec.mechanism.description, rig.spec.mechanism.gravity)
    run = rig.run()
    options = {"method": "LSODA", "rtol": 1e-10, "atol": 1e-12, "max_step": 2e-3}
    found = solve_ivp(partial(wrist_by_hand, links), (0.0, run.t[-1]), np.zeros(10), t_eval=run.t, **options)
    expected = {"pitch/position": found.y[0], "roll/position": found.y[1], "wrist/current_a": found.y[4]}
    for name, values in expected.items():
        assert run[name] == pytest.approx(values, abs=1e-5 * np.ptp(values)), name
    assert run.summary["energy"]["residual_relative"] < 1e-9


# --- energy ---

NAMES = sorted(f"drives/{path.stem}" for path in (FOLDER / "drives").glob("*.yaml"))
SECONDS = 0.05  # most have no later start of their motion
LATER = {"drives/hydraulic_boom": 0.5, "drives/dc_start": 0.5}


COVERING = few_samples(NAMES, "joints")


@pytest.mark.parametrize("name", COVERING)
def test_what_a_rig_is_supplied_with_it_stores_or_dissipates(sample: Callable[..., Rig], name: str) -> None:
    energy = sample(name, *settings()).run(LATER.get(name, SECONDS)).summary["energy"]
    assert energy is not None and energy["residual_relative"] < 1e-6
    assert energy["dissipated"] > 1e-6 and max(abs(energy["work_in"]), abs(energy["stored"])) > 1e-6


# --- the power stage ---

MACHINE = dc_machine.Params(0.5, 2e-3, inertia=3e-5, torque_constant=0.04)
SERVO = pmsm.Params(4, 0.5, 1.0e-3, 1.8e-3, 0.02, inertia=1e-3)
INVERTER = Inverter(2e-6, 20e3, 48.0, rounding_current=1e-4)
OVERLOAD = Overload(2.0, 0.5)


def test_the_error_of_three_phases_is_six_steps_with_the_published_fundamental() -> None:
    """(4/π) t_d f_s U_dc against the current, and a period of 60° (Jeong and Park 1991)."""
    angles = np.linspace(0.0, 2.0 * math.pi, 24_001)[:-1] + math.pi / 24_000  # beside the steps
    d, q = INVERTER.errors(0.0, 7.0, angles, INVERTER.supply_voltage)
    assert np.mean(q) == pytest.approx(-4.0 / math.pi * 2e-6 * 20e3 * 48.0, rel=1e-5)
    assert np.mean(d) == pytest.approx(0.0, abs=1e-4)
    assert q == pytest.approx(np.roll(q, 4000), abs=1e-3)
    assert np.hypot(d, q) == pytest.approx(
        np.full(angles.shape, 4.0 / 3.0 * INVERTER.lost_voltage(INVERTER.supply_voltage)), rel=2e-3
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_loop_finds_the_two_dead_times_of_a_full_bridge(sign: float) -> None:
    """Held: the current follows the PI controller that the loop is, by hand; at rest the inverter is commanded
    R i* + 2 ΔU."""
    control = CurrentControl(150.0, inverter=INVERTER)
    assembly = bench(dc_machine.controlled(MACHINE, control, 1.0), {"shaft": ("speed", "rad/s")}, request="N*m")
    times, w, target = np.array([0.5e-3, 2e-3, 8e-3, 0.1]), control.rate, sign * 2.0
    found = Simulation(assembly, times, lambda _: {"speed": 0.0, "request": 0.04 * target}, rtol=1e-9)

    def by_hand(t: float, x: np.ndarray) -> list[float]:
        i, integral = x
        u = 0.5 * target + (2e-3 * w) * (target - i) + 250.0 * ((0.5 + 2e-3 * w) * integral - 2e-3 * i)
        return [(u - 0.5 * i - 2.0 * 2e-6 * 20e3 * 48.0 * i / math.sqrt(i * i + 1e-8)) / 2e-3, target - i]

    expected = solve_ivp(by_hand, (0.0, 0.1), [0.0, 0.0], "Radau", times, rtol=1e-9, atol=1e-12).y[0]
    assert found["part.winding.flow"] == pytest.approx(expected, rel=1e-7)
    assert expected[1] < 0.8 * target if sign > 0.0 else expected[1] > 0.8 * target
    assert found["part.winding.flow"][-1] == pytest.approx(target, rel=1e-8)
    assert found["part.missing.displacement"][-1] == pytest.approx(
        -sign * 2.0 * INVERTER.lost_voltage(INVERTER.supply_voltage), rel=1e-8
    )


SYNCHRONOUS: dict[str, dict[str, Any]] = {
    "pmsm": {"pole_pairs": 4, "resistance": 0.5, "inductance_d": 3e-4, "inductance_q": 4e-4, "flux": 0.02},
    "stepper": {"teeth": 4, "resistance": 0.5, "inductance": 4e-4, "torque_constant": 0.12},
}


@pytest.mark.parametrize("motor", SYNCHRONOUS)
@pytest.mark.parametrize("rate", [0.0, 16e3])
def test_a_drive_gives_its_torque_with_a_hot_winding_and_a_dead_time(motor: str, rate: float) -> None:
    """Continuous and sampled loops alike, in a steady state; in a voltage limit they do not wind up."""
    thermal = {"winding_capacity": 0.05, "housing_capacity": 20, "winding_to_housing": 4, "housing_to_ambient": 0.1}
    inverter = {"dead_time": 1e-6, "switching_frequency": 2e4, "supply_voltage": 48}
    drive = {
        "type": "drive",
        "motor": {"type": motor, **SYNCHRONOUS[motor], "inertia": 1e-4, "thermal": thermal},
        "control": {"bandwidth": 300, "voltage_limit": 6.0, "inverter": inverter},
        "loops": {"mode": "effort", "current": {"rate": rate}} if rate else None,
    }
    body = {"name": "link", "joint": "hinge", "axis": [0, 0, 1], "mass": 1, "inertia": [1e6] * 3}
    goal = {"type": "trapezoidal", "goal": 1e6, "max_velocity": 1e6, "max_acceleration": 1e9}
    for request, held in ((2.0, False), (0.5, True)):  # beyond what 6 V give, and within
        rig = Rig.from_dict(
            {
                "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
                "joints": {"hinge": {"actuator": drive, "limits": {"effort": request}}},
                "controllers": [{"type": "pid", "kp": 1, "ki": 0, "kd": 0, "trajectory": goal}],
                "schedule": {"step": "1 ms", "duration": "1 s", "integrator": "rodas4", "substeps": "auto"},
            }
        )
        run = rig.run()
        assert run["hinge/winding_temperature"][-1] > 20.0
        assert bool(run["hinge/effort"][-1] == pytest.approx(request, rel=1e-4)) == held


def test_a_slow_servo_has_its_torque_and_ripples_six_times_per_electrical_turn() -> None:
    """The mean of the error is found; of its sixth harmonic E the loop leaves |E s / ((s + ω + R/L) (L s + R))|."""
    inverter = Inverter(2e-6, 20e3, 48.0)
    control = CurrentControl(400.0, inverter=inverter)
    assembly = bench(pmsm.controlled(SERVO, control, 1.0), {"shaft": ("speed", "rad/s")}, request="N*m")
    speed = 2.0 * math.pi / 4.0  # one electrical turn per second
    t = np.array([0.0, *np.linspace(1.0 / 6.0, 0.5, 61)])
    found = Simulation(assembly, t, lambda _: {"speed": speed, "request": 0.6}, rtol=1e-8, max_step=2e-3)
    current = pmsm.per_phase(found["part.winding_q.flow"])[1:-1]
    assert np.mean(current) == pytest.approx(5.0, abs=0.005)
    spectrum = np.abs(np.fft.rfft(current - current.mean())) / 30.0
    assert spectrum.argmax() == 2  # in a third of a turn
    angles = np.linspace(0.0, 2.0 * math.pi / 6.0, 4001)[:-1]
    _, error = inverter.errors(0.0, 5.0, angles, inverter.supply_voltage)
    sixth, s = 2.0 * abs(np.mean(error * np.exp(-6j * angles))), 2j * math.pi * 6.0
    left = abs(sixth * s / ((s + control.rate + 0.5 / 1.8e-3) * (1.8e-3 * s + 0.5)))
    assert spectrum[2] == pytest.approx(left, rel=0.03)
    assert found.energy_gap() < 1e-6


def heated(t: np.ndarray) -> tuple[np.ndarray, float]:
    """(i_max², the time at which the limit begins to fall) of a drive whose request is always larger."""
    continuous, peak, tau = 4.0, 36.0, 0.5
    begins = -tau * math.log(1.0 - (1.0 - BAND) * continuous / peak)
    rate = (1.0 + (peak - continuous) / (BAND * continuous)) / tau
    share = np.exp(-rate * np.maximum(t - begins, 0.0))
    return continuous + (peak - continuous) * share, begins


@pytest.mark.parametrize("machine", ["dc_machine", "pmsm"])
def test_the_peak_current_lasts_as_long_as_its_heating_allows(machine: str) -> None:
    """A current loop that is fast beside the heating follows the closed form of the limit."""
    control = CurrentControl(2e4, current_limit=6.0, overload=OVERLOAD)
    graph = (
        dc_machine.controlled(MACHINE, control, 1.0)
        if machine == "dc_machine"
        else pmsm.controlled(SERVO, control, 1.0)
    )
    assembly = bench(graph, {"shaft": ("speed", "rad/s")}, request="N*m")
    t = np.array([0.02, 0.05, 0.06, 0.065, 0.2, 3.0])
    found = Simulation(assembly, t, lambda _: {"speed": 0.0, "request": 50.0}, rtol=1e-7)
    current = found["part.winding.flow"] if machine == "dc_machine" else pmsm.per_phase(found["part.winding_q.flow"])
    expected, begins = heated(t)
    assert 0.05 < begins < 0.06
    assert current == pytest.approx(np.sqrt(expected), rel=2e-3)
    assert current[0] == pytest.approx(6.0, rel=1e-6) and current[-1] == pytest.approx(2.0, rel=1e-6)
