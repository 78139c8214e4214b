"""Losses of gear stages by direction and speed, their stiction, and stages that lock themselves."""

import math
from typing import Any

import numpy as np
import pytest

from cosim import Rig
from cosim.core import ops
from cosim.mechanics.bondgraph import Assembly, I, Law, Se, Sf, assemble
from cosim.mechanics.bondgraph.components import gear_stage
from cosim.mechanics.bondgraph.elements import Value
from tests.bondgraph.graphs import M, graph_of
from tests.bondgraph.simulation import Simulation

LEAD, ANGLE = math.radians(4.0), math.radians(6.0)  # of a worm, and of its friction
WORM: dict[str, Any] = {
    "ratio": 40.0,
    "stiffness": 500.0,
    "damping": 0.5,
    "efficiency": math.tan(LEAD) / math.tan(LEAD + ANGLE),
    "back_efficiency": math.tan(LEAD - ANGLE) / math.tan(LEAD),
    "breakaway": 1e-3,
    "bristle_time": 1e-3,
}
MESH: dict[str, Any] = {"stiffness": 1e4, "damping": 1.0}
TABLE: dict[str, Any] = {"efficiencies": (0.7, 0.9), "back_efficiencies": (0.5, 0.8), "speeds": (1.0, 3.0)}


@pytest.mark.parametrize("speed", [3.0, -3.0])
@pytest.mark.parametrize("torque", [20.0, -7.0])
def test_an_efficiency_is_the_friction_per_load_that_has_it(speed: float, torque: float) -> None:
    """η = 1 / (1 + μ), η' = 1 − μ; by default η' = 2 − 1 / η."""
    by_load = gear_stage.Params(10.0, coulomb=0.4, load_friction=0.25)
    table = {"efficiencies": (0.8, 0.8), "speeds": (0.0, 1.0)}
    others: list[dict[str, Any]] = [{"efficiency": 0.8}, {"efficiency": 0.8, "back_efficiency": 0.75}, table]
    for other in others:
        stage = gear_stage.Params(10.0, coulomb=0.4, **other)
        expected = gear_stage.friction(by_load, speed, torque)
        assert gear_stage.friction(stage, speed, torque) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("losses", [{"load_friction": 0.3}, {"efficiency": 0.7, "back_efficiency": 0.4}, TABLE])
def test_friction_passes_between_its_directions_without_a_jump(losses: dict[str, Any]) -> None:
    """Beyond the widths it is (M_0 + f |M|) / (1 + f) where the input drives, (M_0 + f' |M|) / (1 − f') where the load
    does; within, between both, and nowhere steeper than the width allows."""
    stage = gear_stage.Params(10.0, coulomb=0.5, **losses)
    torque, step = np.linspace(-2.0, 2.0, 4001, retstep=True)
    for speed in (-5.0, -0.3, -0.02, 0.004, 0.02, 2.0):
        driving, driven = stage.per_load(speed)
        sign = speed / math.hypot(speed, 0.01)
        both = np.array(
            [(0.5 + driving * abs(torque)) / (1.0 + driving), (0.5 + driven * abs(torque)) / (1.0 - driven)]
        )
        found = gear_stage.friction(stage, speed, torque)
        beyond = (abs(torque) > 0.5) & (abs(speed) > 0.01)
        expected = sign * np.where(torque * speed > 0.0, *both)
        assert found[beyond] == pytest.approx(expected[beyond], rel=1e-12)
        # the friction is a line of M, both of its directions together are none
        assert ((found / sign > both.min(axis=0) - 1e-12) & (found / sign < both.max(axis=0) + 1e-12)).all()
        steepest = abs(1.0 / (1.0 - driven) - 1.0 / (1.0 + driving)) + driven / (1.0 - driven)
        assert abs(np.diff(found)).max() < steepest * step


def turned(stage: gear_stage.Params, speed: float, load: Value) -> Assembly:
    """A stage between a source of speed and a torque on its output."""
    parts = {"stage": gear_stage.build(stage), "speed": Sf(M, speed), "load": Se(M, load), "shaft": "1"}
    return assemble(graph_of("speed -> shaft -> stage.input", "load -> stage.output", **parts))


@pytest.mark.parametrize("speed", [2.0, -2.5])
def test_the_power_behind_a_stage_has_the_efficiency_of_its_direction_and_speed(speed: float) -> None:
    """At steady speed of the output, with a load of 20 N·m that the input lifts or lets down."""
    stage = gear_stage.Params(10.0, **MESH, **TABLE, inertia=0.05, creep_speed=1e-7)
    assembly = turned(stage, 10.0 * speed, -20.0)
    found = Simulation(assembly, [0.1])
    eta = np.interp(abs(speed), TABLE["speeds"], TABLE["efficiencies" if speed > 0.0 else "back_efficiencies"])
    power = assembly.supplied(found.known())["speed"]
    assert power == pytest.approx(20.0 * speed * (1.0 / eta if speed > 0.0 else eta), rel=1e-6)


@pytest.mark.parametrize("speed", [2.0, -2.5, 40.0])
@pytest.mark.parametrize("ratio", [10.0, -10.0])
def test_a_slipping_stage_has_the_friction_of_direction_and_speed(speed: float, ratio: float) -> None:
    """At the input, per torque M in the mesh: M / η − M where the input drives, M − η' M where the load does."""
    stage = gear_stage.Params(ratio, **MESH, **TABLE, coulomb=0.3, breakaway=1e-3, bristle_time=1e-3)
    for torque in (4.0, -4.0):
        drives = torque * speed > 0.0
        eta = np.interp(abs(speed) / 10.0, TABLE["speeds"], TABLE["efficiencies" if drives else "back_efficiencies"])
        expected = 0.03 + (4.0 / eta - 4.0 if drives else 4.0 - 4.0 * eta)
        bend = math.copysign(1.0, speed)
        assert gear_stage.bend_rate(stage, speed, bend) == pytest.approx(0.0, abs=1e-9)
        assert gear_stage.held(stage, speed, torque, bend) == pytest.approx(bend * expected, rel=1e-9)


@pytest.mark.parametrize("speed", [2.0, -2.0])
def test_a_worm_has_the_torques_of_its_lead_and_friction_angles(speed: float) -> None:
    """tan(λ + ρ) / tan λ to lift the load, and tan(ρ − λ) / tan λ to push it down: the motor gives power both ways."""
    assembly = turned(gear_stage.Params(**WORM, inertia=2.0), speed, -100.0)
    found = Simulation(assembly, [1.0], rtol=1e-8)
    angle = LEAD + ANGLE if speed > 0.0 else LEAD - ANGLE
    torque = 100.0 / 40.0 * math.tan(angle) / math.tan(LEAD)
    assert assembly.effort("speed", found.known()) == pytest.approx(torque, rel=1e-6)
    assert torque * speed > 0.0


def hoist(load: str, **gear: float) -> Any:
    """A load on a worm whose motor gives nothing, for a minute."""
    graph = {
        "junctions": {"rotor": 1},
        "elements": {
            "inertia": {"type": "I", "domain": "rotational", "inertia": 1e-3},
            "load": {"type": "Se", "domain": "rotational", "law": load},
        },
        "components": {"worm": {"type": "gear_stage", **WORM, **gear}},
        "bonds": ["rotor -> inertia", "rotor -> worm.input", "load -> worm.output -> joint"],
        "signals": {"mesh": {"law": "worm.torque.effort", "unit": "N*m"}},
    }
    body = {"name": "drum", "joint": "drum", "axis": [0, 0, 1], "mass": 1, "inertia": [1, 1, 2]}
    rig = {
        "mechanism": {"gravity": [0, 0, 0], "bodies": [body]},
        "joints": {"drum": {"actuator": {"type": "bond_graph", "graph": graph}}},
        "schedule": {"step": "10 ms", "duration": "60 s", "integrator": "rodas4", "substeps": "auto"},
    }
    return Rig.from_dict(rig).run()


def test_a_locked_worm_does_not_creep_in_a_minute() -> None:
    run = hoist("-100")
    assert run["drum/mesh"][-1] == pytest.approx(-100.0 / -40.0, rel=1e-9)
    # the mesh is twisted by what it transmits, the bristles hold it with 1 / (1 − η') of their largest bend
    twist = 2.5 / 500.0 + 1e-3 / (1.0 - WORM["back_efficiency"])
    assert run["drum/position"][-1] == pytest.approx(-twist / 40.0, rel=1e-6)
    assert np.ptp(run["drum/position"][run.t > 2.0]) < 1e-12


def test_a_locked_worm_does_not_creep_under_a_load_that_swings() -> None:
    """The same position at the same load, a minute later."""
    run = hoist("-100 - 30 * sin(2 * pi * t)")
    position = run["drum/position"]
    assert np.ptp(position[-100:]) == pytest.approx(2.0 * 30.0 / 1600.0 / 500.0, rel=1e-2)  # the mesh alone
    assert position[-1] == pytest.approx(position[500], abs=1e-9)


def test_a_worm_that_does_not_lock_runs_down() -> None:
    """η' of what the load gives accelerates the rotor: a = M_load / (J_2 + u² J_1 / η')."""
    run = hoist("-100", back_efficiency=0.3)
    assert run["drum/velocity"][-1] / run.t[-1] == pytest.approx(-100.0 / (2.0 + 1600.0 * 1e-3 / 0.3), rel=1e-4)


def test_a_stage_that_sticks_swings_with_the_frequency_and_damping_of_its_bristles() -> None:
    """J ẍ + (M_0 τ / z) ẋ + (k + M_0 / z) x = 0 of the input, with the output held and without friction per load."""
    stage = gear_stage.Params(10.0, stiffness=400.0, coulomb=10.0, breakaway=1e-3, bristle_time=5e-4)
    parts = {"stage": gear_stage.build(stage), "rotor": "1", "inertia": I(M, 0.01, 0.02), "held": Sf(M, 0.0)}
    graph = graph_of("rotor -> inertia", "rotor -> stage.input", "stage.output -> held", **parts)
    found = Simulation(assemble(graph), np.linspace(0.0, 0.05, 21), method="DOP853", rtol=1e-9)
    rate = 1.0 * 5e-4 / 1e-3 / 0.01 / 2.0
    frequency = math.sqrt((400.0 + 1.0 / 1e-3) / 0.01 - rate**2)
    expected = 0.02 / frequency * np.exp(-rate * found.t) * np.sin(frequency * found.t)
    assert found["stage.mesh.spring.displacement"] == pytest.approx(expected, abs=1e-10)
    assert found["stage.bend.displacement"] == pytest.approx(expected / 1e-3, abs=1e-7)


def test_a_load_that_changes_its_side_at_speed_is_passed() -> None:
    """Friction per load is 0 there, without a jump: 20 sin(t) N·m on the output of a stage that turns."""
    stage = gear_stage.Params(10.0, **MESH, efficiency=0.8, breakaway=1e-3, bristle_time=1e-4, inertia=0.05)
    assembly = turned(stage, 200.0, Law(lambda t: -20.0 * ops.sin(t), ("t",)))
    times = np.linspace(0.0, 2.0 * math.pi, 9)
    found = Simulation(assembly, times, rtol=1e-6)
    for k in (2, 6):  # 20 N·m against the motion, and with it
        torque = assembly.effort("speed", found.known(k))
        assert torque == pytest.approx(2.0 / 0.8 if k == 2 else -2.0 * (2.0 - 1.0 / 0.8), rel=1e-3)
    assert abs(assembly.effort("speed", found.known(4))) < 1e-2
    assert found.energy_gap() < 1e-6


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_bristles_only_bend_on_the_way_back_and_below_nine_tenths(side: float) -> None:
    """z ξ̇ = ω − α |ω| ξ"""
    stage = gear_stage.Params(10.0, **MESH, efficiency=0.8, breakaway=2e-3)
    rates = [gear_stage.bend_rate(stage, side * speed, side * bend) for speed, bend in ((3.0, 0.9), (-3.0, 1.0))]
    assert rates == pytest.approx([side * 1500.0, side * -1500.0], rel=1e-9)
    assert gear_stage.bend_rate(stage, side * 3.0, side * 0.95) == pytest.approx(side * 1500.0 * (1.0 - 0.5 * 0.95))


def test_a_step_that_is_too_long_makes_no_more_friction() -> None:
    """ξ beyond 1 relaxes at a rate that stays linear, and holds no more than 1 does."""
    stage = gear_stage.Params(10.0, **MESH, coulomb=10.0, breakaway=1e-3, bristle_time=1e-3)
    for speed in (2.0, 0.0):
        assert gear_stage.held(stage, speed, 0.0, 50.0) == 1.0
        assert gear_stage.held(stage, -speed, 0.0, -50.0) == -1.0
    assert gear_stage.bend_rate(stage, 2.0, 50.0) == pytest.approx(2000.0 * (1.0 - 3.0 * 50.0))
