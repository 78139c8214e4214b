"""Drives of linear axes: screws, racks, belts and linear motors, against equations by hand and each other."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim import Rig, Run
from cosim.core.errors import InputError
from cosim.mechanics.bondgraph import I, Se, Sf, assemble
from cosim.mechanics.bondgraph.components import ball_screw, belt, linear_motor, pmsm, rack
from tests.bondgraph.graphs import M, graph_of
from tests.bondgraph.simulation import Simulation
from tests.kit.messages import Said

MOTOR = {"type": "pmsm", "pole_pairs": 4, "resistance": 0.5, "inductance_d": 3e-4, "inductance_q": 4e-4}
MOTOR |= {"flux": 0.02, "inertia": 1e-4}
LINEAR = {"type": "linear_motor", "pole_pitch": "16 mm", "force_constant": 40, "resistance": 2}
LINEAR |= {"inductance_d": "8 mH", "inductance_q": "9 mH"}
SCREW = {"type": "ball_screw", "lead": "10 mm", "inertia": 2e-5, "mass": 1}
THREAD = {"type": "ball_screw", "lead": "4 mm", "diameter": "18 mm", "thread_friction": 0.15, "inertia": 2e-5}
MESH = {"stiffness": 5e7, "damping": 2e4}
AXES: dict[str, dict[str, Any]] = {
    "screw": {"gears": [SCREW]},
    "screw with losses": {"gears": [{**SCREW, "efficiency": 0.9, "back_efficiency": 0.8, "coulomb": 20}]},
    "left-handed, elastic": {
        "gears": [{"ratio": 2}, {**SCREW, "lead": "-10 mm", **MESH, "efficiency": 0.9, "backlash": "5 um"}]
    },
    "sliding screw": {"gears": [{**THREAD, **MESH, "breakaway": "5 um", "bristle_time": "1 ms"}]},
    "rack": {"gears": [{"ratio": 10}, {"type": "rack", "radius": "20 mm", "efficiency": 0.95, "mass": 1}]},
    "belt": {
        "gears": [
            {"ratio": 5, "inertia": 1e-4},
            {"type": "belt", "radius": "20 mm", "inertia": 1e-4, "stiffness": 1e6, "damping": 2e3, "mass": 0.1},
        ],
        "friction": {"coulomb": 5},
    },
    "linear motor": {
        "motor": {**LINEAR, "mass": 2, "viscous": 3, "coulomb": 2, "load_friction": 0.01, "cogging": 4},
        "control": {"current_limit": 30},
    },
}


def moved(drive: dict[str, Any], typ: str = "prismatic", **schedule: Any) -> Run:
    """A mass of 20 kg, or a disc, up by 0.1 m and down again."""
    body = {"name": "slide", "joint": "rail", "type": typ, "axis": [0, 0, 1], "mass": 20, "inertia": [1] * 3}
    goal = {"type": "quintic", "goal": 0.1, "duration": 0.2, "back": True}
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, -9.81], "bodies": [body]},
            "joints": {"rail": {"actuator": {"type": "drive", "motor": MOTOR, **drive}}},
            "controllers": [{"type": "pid", "kp": 2e5, "ki": 0, "kd": 4e3, "trajectory": goal}],
            "schedule": {"step": "1 ms", "duration": "0.4 s", **schedule},
        }
    ).run()


STEPS: dict[str, dict[str, Any]] = {
    "rodas4": {"substeps": "auto", "tolerance": 1e-10},
    "rosenbrock": {"substeps": 100},
    "rk4": {"substeps": 100},
}


@pytest.mark.parametrize("integrator", STEPS)
@pytest.mark.parametrize("name", AXES)
def test_an_axis_moves_up_and_down_and_its_energy_closes(name: str, integrator: str) -> None:
    if integrator == "rk4" and any("stiffness" in stage for stage in AXES[name].get("gears", ())):
        pytest.skip("too stiff for steps of an explicit method")
    run = moved(AXES[name], integrator=integrator, **STEPS[integrator])
    energy = run.summary["energy"]
    bound = 1e-6 if integrator == "rosenbrock" else 1e-9  # of the second order, with steps of 10 µs
    assert energy is not None and abs(energy["residual_relative"]) < bound
    assert run["rail/position"].max() == pytest.approx(0.1, abs=0.03)


# --- stages ---


@pytest.mark.parametrize("speed", [0.05, -0.05])
@pytest.mark.parametrize(
    ("stage", "eta", "back"),
    [
        (ball_screw.Params(0.01, efficiency=0.9, back_efficiency=0.8, creep_speed=1e-9), 0.9, 0.8),
        (ball_screw.Params(-0.01, efficiency=0.9, creep_speed=1e-9), 0.9, 2.0 - 1.0 / 0.9),
        # a square thread by its friction: F d/2 (l + π μ d) / (π d − μ l), and with −μ (Shigley)
        (ball_screw.Params(0.008, diameter=0.018, thread_friction=0.1, creep_speed=1e-9), None, None),
        (rack.Params(0.02, efficiency=0.95, creep_speed=1e-9), 0.95, 2.0 - 1.0 / 0.95),
    ],
    ids=["both", "left-handed", "thread", "rack"],
)
def test_a_stage_gives_the_force_of_its_efficiency(stage: Any, eta: Any, back: Any, speed: float) -> None:
    """N M η where the torque M drives, N M / η' where the load does; N in rad/m."""
    torque = math.copysign(0.7, stage.ratio)
    module = ball_screw if isinstance(stage, ball_screw.Params) else rack
    parts = {"stage": module.build(stage), "torque": Se(M, torque), "load": Sf("translational", speed), "shaft": "1"}
    assembly = assemble(graph_of("torque -> shaft -> stage.input", "stage.output -> load", **parts))
    force = assembly.effort("load", assembly.solve(0.0, assembly.initial(), {}))
    if eta is None:
        d, lead, mu = 0.018, 0.008, 0.1 if speed > 0.0 else -0.1
        expected = 0.7 / (0.5 * d * (lead + math.pi * mu * d) / (math.pi * d - mu * lead))
    else:
        expected = abs(stage.ratio) * 0.7 * (eta if speed > 0.0 else 1.0 / back)
    assert force == pytest.approx(expected, rel=1e-9)


def test_a_belt_resonates_between_its_pulley_and_its_carriage() -> None:
    """ω² = k (1 / m + r² / J)."""
    stage = belt.Params(0.02, inertia=1e-4, mass=3.0, stiffness=1e5)
    parts = {"rotor": I(M, 2e-4, 5.0), "shaft": "1", "stage": belt.build(stage)}
    assembly = assemble(graph_of("shaft -> rotor", "shaft -> stage.input", **parts, inputs={}))
    t = np.linspace(0.0, 0.1, 30)
    found = Simulation(assembly, t, method="DOP853", rtol=1e-9)
    rate = math.sqrt(1e5 * (1.0 / 3.0 + 0.02**2 / 3e-4))
    # the rotor starts alone, as fast as it turns with its pulley
    start = found["rotor.flow"][0] if "rotor.flow" in found.states else found["stage.input_inertia.flow"][0]
    twist = found["stage.mesh.spring.displacement"]
    assert twist == pytest.approx(start / rate * np.sin(rate * t), abs=1e-7 * start / rate)


def test_a_sliding_screw_that_locks_itself_holds_its_load() -> None:
    """20 kg on a drive that is given nothing: it sinks by the bend of nut and bristles alone."""
    rig = {**AXES["sliding screw"]}
    body = {"name": "slide", "joint": "rail", "type": "prismatic", "axis": [0, 0, 1], "mass": 20, "inertia": [1] * 3}
    run = Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, -9.81], "bodies": [body]},
            "joints": {"rail": {"actuator": {"type": "drive", "motor": MOTOR, **rig}}},
            "schedule": {"step": "1 ms", "duration": "2 s", "integrator": "rodas4", "substeps": "auto"},
        }
    ).run()
    lead, friction = math.atan(0.004 / (math.pi * 0.018)), math.atan(0.15)
    share = 1.0 - math.tan(lead - friction) / math.tan(lead)  # of the load in the bristles at which it slips: > 1
    assert share > 1.0
    expected = -(20 * 9.81 / 5e7 + 5e-6 / share)
    assert run["rail/position"][-1] == pytest.approx(expected, rel=1e-3)
    assert np.ptp(run["rail/position"][run.t > 1.0]) < 1e-9


def test_a_screw_accelerates_its_load_and_the_inertias_before_it() -> None:
    """(m + (2π/l)² (J + J_s)) a = 2π/l M − m g, by SciPy with the current loop by hand."""
    run = moved({"gears": [SCREW], "control": {"bandwidth": 300}}, integrator="rodas4", substeps="auto", tolerance=1e-9)
    n, per_ampere, rate = 2.0 * math.pi / 0.01, 1.5 * 4 * 0.02, 2.0 * math.pi * 300.0
    inertia = 21.0 + n * n * 1.2e-4

    def by_hand(t: float, x: np.ndarray) -> list[float]:
        i, v, _ = x
        target = run["rail/command_effort"][min(int((t + 1e-12) / 1e-3), len(run.t) - 1)] / n / per_ampere
        weight = 20.0 * 9.81  # gravity does not act on the carriage of the screw, which is no body
        return [(rate + 0.5 / 4e-4) * (target - i), (n * per_ampere * i - weight) / inertia, v]

    x, position = np.zeros(3), [0.0]
    for k in range(100):
        found = solve_ivp(by_hand, (k * 1e-3, (k + 1) * 1e-3 - 1e-11), x, rtol=1e-9, atol=1e-12)
        x = found.y[:, -1]
        position.append(x[2])
    assert run["rail/position"][:101] == pytest.approx(np.array(position), abs=1e-7 * np.ptp(position))


# --- the linear motor ---


def test_a_linear_motor_is_a_turning_one_on_a_rack() -> None:
    """Of 4 pole pairs on a pinion of radius p τ / π: the same motion, currents and energies."""
    radius = 4 * 0.016 / math.pi
    turning = {**MOTOR, "resistance": 2, "inductance_d": "8 mH", "inductance_q": "9 mH", "inertia": 2.0 * radius**2}
    turning |= {"flux": 40 * radius / 6.0, "viscous": 3.0 * radius**2, "cogging": 4.0 * radius, "cogging_periods": 8}
    loops = {"mode": "effort", "current": {"rate": 16e3}}
    control = {"bandwidth": 400, "current_limit": 30, "voltage_limit": 60}
    own = {**LINEAR, "mass": 2, "viscous": 3, "cogging": 4}
    for sampled in ({}, {"loops": loops}):
        schedule = {"integrator": "rodas4", "substeps": 32}
        pushed = moved({"motor": own, "control": control, **sampled}, **schedule)
        geared = {"motor": turning, "gears": [{"type": "rack", "radius": radius}], "control": control}
        turned = moved({**geared, **sampled}, **schedule)
        for name in ("position", "velocity", "effort", "current_d", "current_q", "voltage_q"):
            values = turned[f"rail/{name}"]
            assert pushed[f"rail/{name}"] == pytest.approx(values, abs=1e-7 * max(np.ptp(values), 1e-6)), name
        assert np.abs(pushed["rail/current_q"]).max() > 4.0


def test_the_constants_of_a_linear_motor() -> None:
    """F = K i_q + 3/2 π/τ (L_d − L_q) i_d i_q, and the voltage that the motion induces."""
    machine = linear_motor.Params(0.016, 40.0, 2.0, 8e-3, 9e-3, mass=2.0)
    e = "electrical"
    parts = {"u_d": Se(e, 0.0), "u_q": Se(e, 0.0), "motor": linear_motor.build(machine)}
    assembly = assemble(graph_of("u_d -> motor.d", "u_q -> motor.q", **parts))
    i_d, i_q, v = -2.0, 5.0, 0.7
    x = {"motor.winding_d.flow": pmsm.SCALE * i_d, "motor.winding_q.flow": pmsm.SCALE * i_q, "motor.inertia.flow": v}
    rates, _ = assembly.flow(0.0, x, {})
    force = 40.0 * i_q + 1.5 * math.pi / 0.016 * (8e-3 - 9e-3) * i_d * i_q
    assert rates["motor.inertia.flow"] == pytest.approx(force / 2.0, rel=1e-12)
    expected = -2.0 * i_q - math.pi / 0.016 * v * (8e-3 * i_d + 40.0 * 0.016 / (1.5 * math.pi))
    assert rates["motor.winding_q.flow"] / pmsm.SCALE == pytest.approx(expected / 9e-3, rel=1e-12)


def test_the_scale_of_a_linear_motor_has_whole_counts() -> None:
    loops = {"mode": "effort", "current": {}, "velocity": {"gain": 100}, "encoder": {"resolution": "50 um"}}
    run = moved({"motor": LINEAR, "loops": loops}, integrator="rodas4", substeps="auto")
    measured = run["rail/measured_position"]
    assert measured / 50e-6 == pytest.approx(np.round(measured / 50e-6), abs=1e-6)
    assert np.abs(measured - run["rail/position"])[2:].max() < 50e-6 + 1e-3 * np.abs(run["rail/velocity"]).max()


# --- what is refused ---

LOOPS = {"mode": "effort", "current": {}, "velocity": {"gain": 1}}
WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "a screw on a hinge": ("revolute", {"gears": [{"ratio": 2}, SCREW]}),
    "a linear motor on a hinge": ("revolute", {"motor": LINEAR}),
    "a gear on a rail": ("prismatic", {"gears": [{"ratio": 20}]}),
    "a linear motor with gears": ("prismatic", {"motor": LINEAR, "gears": [{"ratio": 20}]}),
    "a stage behind a screw": ("prismatic", {"gears": [SCREW, {"ratio": 20}]}),
    "a screw that locks itself": ("prismatic", {"gears": [THREAD]}),
    "a screw that cannot drive": ("prismatic", {"gears": [{**THREAD, "thread_friction": 20}]}),
    "a lead of 0": ("prismatic", {"gears": [{"type": "ball_screw", "lead": 0}]}),
    "half a thread": ("prismatic", {"gears": [{**SCREW, "diameter": "18 mm"}]}),
    "two losses": ("prismatic", {"gears": [{**THREAD, "efficiency": 0.9}]}),
    "a backlash of a turn": ("prismatic", {"gears": [{**SCREW, **MESH, "backlash": "11 mm"}]}),
    "an elastic screw without inertia": (
        "prismatic",
        {"motor": {**MOTOR, "inertia": 0}, "gears": [{**SCREW, **MESH, "inertia": 0}]},
    ),
    "turns of a linear motor": ("prismatic", {"motor": LINEAR, "loops": {**LOOPS, "encoder": {"cpr": 4096}}}),
    "a scale of a motor that turns": (
        "prismatic",
        {"gears": [SCREW], "loops": {**LOOPS, "encoder": {"resolution": "1 um"}}},
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_an_axis_cannot_have(case: str, said: Said) -> None:
    typ, drive = WRONG[case]
    with pytest.raises(InputError) as raised:
        moved(drive, typ)
    said(raised.value)
