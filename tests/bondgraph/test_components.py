"""Components of drives against closed forms and published solutions."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.core import ops
from cosim.mechanics.bondgraph import I, Law, R, Se, Sf, assemble
from cosim.mechanics.bondgraph.components import (
    dc_machine,
    friction,
    gear_stage,
    harmonic_drive,
    planetary,
    pmsm,
    shaft,
)
from cosim.mechanics.bondgraph.components._thermal import Thermal
from tests.bondgraph.graphs import M, given, graph_of
from tests.bondgraph.simulation import Simulation, bench

SERVO = pmsm.Params(4, 0.5, 1.0e-3, 1.8e-3, 0.02, inertia=1e-3, viscous=1e-4)


def test_a_dc_machine_answers_a_step_as_its_closed_form() -> None:
    """L J ω̈ + (R J + L b) ω̇ + (R b + K²) ω = K U."""
    machine = dc_machine.Params(0.5, 2e-3, inertia=1e-3, torque_constant=0.1, viscous=2e-4)
    assembly = bench(dc_machine.build(machine), {"armature": ("voltage", "V")})
    t = np.linspace(0.0, 0.3, 40)
    found = Simulation(assembly, t, lambda _: {"voltage": 12.0}, method="DOP853", rtol=1e-9)
    roots = np.roots([2e-3 * 1e-3, 0.5 * 1e-3 + 2e-3 * 2e-4, 0.5 * 2e-4 + 0.1**2])
    final = 0.1 * 12.0 / (0.5 * 2e-4 + 0.1**2)
    a, b = roots
    speed = final * (1.0 + (b * np.exp(a * t) - a * np.exp(b * t)) / (a - b)).real
    assert found["part.inertia.flow"] == pytest.approx(speed, rel=1e-7, abs=1e-7 * final)


def test_a_field_winding_excites_as_magnets_do() -> None:
    """At steady excitation K = G U_f / R_f."""
    wound = dc_machine.Params(0.5, 2e-3, inertia=1e-3, excitation=0.05, field_resistance=20.0, field_inductance=0.4)
    sources = {"armature": ("voltage", "V"), "field": ("excitation", "V")}
    found = Simulation(bench(dc_machine.build(wound), sources), [2.0], lambda _: {"voltage": 12.0, "excitation": 40.0})
    assert found["part.field_winding.flow"][-1] == pytest.approx(2.0, rel=1e-8)
    assert found["part.inertia.flow"][-1] == pytest.approx(12.0 / (0.05 * 2.0), rel=1e-6)


def test_a_synchronous_machine_has_the_torque_of_its_currents() -> None:
    """3/2 p (ψ i_q + (L_d − L_q) i_d i_q), and the voltages of both axes."""
    assembly = bench(pmsm.build(SERVO), {"d": ("u_d", "V"), "q": ("u_q", "V")})
    rng = np.random.default_rng(0)
    for _ in range(20):
        i_d, i_q, u_d, u_q, w = rng.normal(size=5) * [5.0, 10.0, 20.0, 20.0, 100.0]
        s, p = pmsm.SCALE, SERVO.pole_pairs
        x = {"part.winding_d.flow": s * i_d, "part.winding_q.flow": s * i_q, "part.inertia.flow": w}
        rates, _ = assembly.flow(0.0, x, {"u_d": s * u_d, "u_q": s * u_q})
        ld, lq, flux = SERVO.inductance_d, SERVO.inductance_q, SERVO.flux
        torque = 1.5 * p * (flux * i_q + (ld - lq) * i_d * i_q)
        assert rates["part.inertia.flow"] == pytest.approx((torque - 1e-4 * w) / 1e-3, rel=1e-10)
        assert rates["part.winding_d.flow"] / s == pytest.approx((u_d - 0.5 * i_d + p * w * lq * i_q) / ld, rel=1e-10)
        expected = (u_q - 0.5 * i_q - p * w * (ld * i_d + flux)) / lq
        assert rates["part.winding_q.flow"] / s == pytest.approx(expected, rel=1e-10)


BEARINGS = {"viscous": 2e-4, "coulomb": 0.03, "load_friction": 0.05, "creep_speed": 0.5}


def bearings(speed: float, torque: float) -> float:
    return 2e-4 * speed + (0.03 + 0.05 * abs(torque)) * speed / math.hypot(speed, 0.5)


def test_the_bearings_of_a_dc_machine_brake_its_rotor() -> None:
    """There and back again, beside the equations by hand; magnets and a field winding of the same constant."""
    magnets = dc_machine.Params(0.5, 2e-3, inertia=1e-3, torque_constant=0.1, **BEARINGS)
    wound = dc_machine.Params(
        0.5, 2e-3, inertia=1e-3, excitation=0.05, field_resistance=20.0, field_inductance=0.4, **BEARINGS
    )
    t = np.linspace(0.0, 0.5, 21)

    def voltage(time: float) -> float:
        return 6.0 * math.cos(9.0 * time)

    def by_hand(time: float, x: np.ndarray) -> list[float]:
        i, w = x
        return [(voltage(time) - 0.5 * i - 0.1 * w) / 2e-3, (0.1 * i - bearings(w, 0.1 * i)) / 1e-3]

    expected = solve_ivp(by_hand, (0.0, 0.5), [0.0, 0.0], "Radau", t, rtol=1e-10, atol=1e-12).y[1]
    found = Simulation(
        bench(dc_machine.build(magnets), {"armature": ("u", "V")}), t, lambda time: {"u": voltage(time)}, rtol=1e-10
    )
    assert found["part.inertia.flow"] == pytest.approx(expected, abs=1e-7 * np.ptp(expected))
    assert found.energy_gap() < 1e-9
    assembly = bench(dc_machine.build(wound), {"armature": ("u", "V"), "field": ("u_f", "V")})
    x = assembly.initial() | {"part.field_winding.flow": 2.0, "part.winding.flow": -3.0, "part.inertia.flow": 4.0}
    rates, _ = assembly.flow(0.0, x, {"u": 0.0, "u_f": 40.0})
    assert rates["part.inertia.flow"] == pytest.approx((-0.3 - bearings(4.0, -0.3)) / 1e-3, rel=1e-12)


def test_the_bearings_of_a_synchronous_machine_know_its_torque() -> None:
    machine = pmsm.Params(4, 0.5, 1.0e-3, 1.8e-3, 0.02, inertia=1e-3, **BEARINGS)
    assembly = bench(pmsm.build(machine), {"d": ("u_d", "V"), "q": ("u_q", "V")})
    for i_d, i_q, w in ((-3.0, 6.0, 20.0), (2.0, -5.0, 0.3), (0.0, 4.0, -7.0)):
        x = {"part.winding_d.flow": pmsm.SCALE * i_d, "part.winding_q.flow": pmsm.SCALE * i_q, "part.inertia.flow": w}
        torque = 6.0 * (0.02 * i_q - 0.8e-3 * i_d * i_q)
        rates, _ = assembly.flow(0.0, x, {"u_d": 0.0, "u_q": 0.0})
        assert rates["part.inertia.flow"] == pytest.approx((torque - bearings(w, torque)) / 1e-3, rel=1e-12)


def test_cogging_stores_what_it_takes() -> None:
    cogged = pmsm.Params(4, 0.5, 1e-3, 1e-3, 0.02, inertia=1e-3, cogging=0.05, cogging_periods=24)
    assembly = bench(pmsm.build(cogged), {"d": ("u_d", "V"), "q": ("u_q", "V")})
    found = Simulation(
        assembly, np.linspace(0.0, 0.4, 9), lambda t: {"u_d": 0.0, "u_q": 8.0 * math.sin(20.0 * t)}, method="DOP853"
    )
    for k in range(9):
        change = found.stored(k) - found.stored(0)
        assert found.supplied[k] == pytest.approx(change + found.dissipated[k], rel=1e-6, abs=1e-9)


def test_a_winding_heats_to_its_steady_temperatures_and_its_resistance_rises() -> None:
    """Held shaft: i = U/R(T), T_w = i² R (R_wh + R_ha), T_h = i² R R_ha."""
    thermal = Thermal(30.0, 200.0, 0.8, 1.5)
    machine = dc_machine.Params(0.5, 2e-3, torque_constant=0.1, thermal=thermal)
    sources = {"armature": ("voltage", "V"), "shaft": ("speed", "rad/s")}
    found = Simulation(bench(dc_machine.build(machine), sources), [6000.0], lambda _: {"voltage": 3.0, "speed": 0.0})
    winding = found["part.winding_heat.displacement"][-1] / 30.0
    housing = found["part.housing_heat.displacement"][-1] / 200.0
    resistance = 0.5 * (1.0 + 0.00393 * winding)
    assert found["part.winding.flow"][-1] == pytest.approx(3.0 / resistance, rel=1e-7)
    assert winding == pytest.approx(9.0 / resistance * 2.3, rel=1e-6)
    assert housing == pytest.approx(9.0 / resistance * 1.5, rel=1e-6)
    assert found.supplied[-1] == pytest.approx(found.dissipated[-1] + found.stored(-1), rel=1e-8)


def test_a_shaft_with_backlash_swings_as_published() -> None:
    """ElastoBacklash of the Modelica Standard Library 4.1.0: an inertia on the ground, wound up beyond its backlash;
    the sample rig has the other form of the model."""
    mesh = shaft.Params(2e4, 50.0, backlash=math.pi / 4, twist=math.pi / 2, model="transformer")
    parts = {"speed": "1", "inertia": I(M, 5.0), "ground": Sf(M, 0.0), "shaft": shaft.build(mesh)}
    graph = graph_of("speed -> inertia", "speed -> shaft.input", "shaft.output -> ground", **parts)
    found = Simulation(assemble(graph), [0.1, 0.25, 0.5, 1.0], method="DOP853", max_step=4e-3)
    expected = [0.2498311, 0.5808075, -0.30993973, -0.1555704]
    assert found["shaft.twist.displacement"] == pytest.approx(expected, abs=1e-4)
    assert found["shaft.twist.flow"] == pytest.approx([52.893741, 30.080733, -17.228305, -7.02293], rel=1e-4)


def test_two_inertias_on_a_shaft_resonate_at_their_frequency() -> None:
    """ω² = k (1/J_1 + 1/J_2)."""
    parts = {
        "near": "1",
        "far": "1",
        "first": I(M, 0.02, 1.0),
        "second": I(M, 0.05),
        "shaft": shaft.build(shaft.Params(300.0)),
    }
    graph = graph_of("near -> first", "far -> second", "near -> shaft.input", "shaft.output -> far", **parts)
    t = np.linspace(0.0, 0.2, 30)
    found = Simulation(assemble(graph), t, method="DOP853", rtol=1e-9)
    frequency = math.sqrt(300.0 * (1.0 / 0.02 + 1.0 / 0.05))
    assert found["shaft.spring.displacement"] == pytest.approx(np.sin(frequency * t) / frequency, abs=1e-9)


@pytest.mark.parametrize("load", [0.2, 5.0])
@pytest.mark.parametrize("elastic", [False, True])
def test_the_efficiency_of_a_stage_over_its_load(load: float, elastic: bool) -> None:
    """η = M_load / (M_load + M_0 + μ M_load)."""
    mesh: dict[str, Any] = {"stiffness": 5e3, "damping": 2.0} if elastic else {}
    stage = gear_stage.Params(10.0, **mesh, inertia=0.01, coulomb=0.4, load_friction=0.15, creep_speed=1e-6)
    torque = (load * 1.15 + 0.4) / 10.0
    sides = {"motor": Sf(M, 50.0), "load": Se(M, -load)} if elastic else {"motor": Se(M, torque), "load": Sf(M, 5.0)}
    behind = "load -> stage.output" if elastic else "stage.output -> load"
    graph = graph_of("motor -> input -> stage.input", behind, input="1", stage=gear_stage.build(stage), **sides)
    assembly = assemble(graph)
    x = assembly.initial()
    if elastic:  # at steady state
        x |= {"stage.inertia.flow": 5.0, "stage.mesh.spring.displacement": torque / 5e3}
    rates, known = assembly.flow(0.0, x, {})
    assert all(abs(rate) < 1e-9 for rate in rates.values())
    supplied = assembly.supplied(known)
    assert -supplied["load"] / supplied["motor"] == pytest.approx(load / (load + 0.4 + 0.15 * load), rel=1e-9)


def test_a_load_that_drives_a_stage_meets_its_friction() -> None:
    """M_T = M_0 + μ M_load in this direction too: the motor gets M_load − M_T."""
    stage = gear_stage.Params(10.0, coulomb=0.4, load_friction=0.15, creep_speed=1e-6)
    transmitted = -(20.0 - (0.4 + 0.15 * 20.0))
    assert gear_stage.friction(stage, 3.0, transmitted) == pytest.approx(0.4 + 0.15 * 20.0, rel=1e-9)


def test_a_planetary_gear_turns_as_willis_says() -> None:
    graph = graph_of(
        *("sun -> gear.sun", "gear.ring -> ring", "gear.arm -> arm -> load", "arm -> inertia"),
        inputs={"sun": "rad/s", "ring": "rad/s"},
        gear=planetary.build(planetary.Params(3.0)),
        **{
            "sun": Sf(M, given("sun")),
            "ring": Sf(M, given("ring")),
            "arm": "1",
            "load": R(M, 2.0),
            "inertia": I(M, 0.1),
        },
    )
    assembly = assemble(graph)
    known = assembly.solve(0.0, assembly.initial(), {"sun": 12.0, "ring": 2.0, "sun'": 0.0, "ring'": 0.0})
    assert assembly.flow_of("load", known) == pytest.approx((12.0 + 3.0 * 2.0) / 4.0)
    # torques of sun : ring : arm = 1 : i : −(1 + i)
    torque = assembly.effort("sun", known)
    assert assembly.effort("ring", known) == pytest.approx(-3.0 * torque, rel=1e-12)


def test_a_strain_wave_gear_hardens_and_has_its_kinematic_error() -> None:
    params = harmonic_drive.Params(50.0, 2e4, hardening=5e7, damping=1.0, error=2e-4)
    parts = {"gear": harmonic_drive.build(params), "motor": Sf(M, given("speed")), "arm": I(M, 0.5), "output": "1"}
    assembly = assemble(
        graph_of("motor -> gear.input", "gear.output -> output -> arm", inputs={"speed": "rad/s"}, **parts)
    )
    found = Simulation(
        assembly, np.linspace(0.0, 2.0, 21), lambda t: {"speed": 30.0 * math.sin(3.0 * t)}, 1e-8, method="DOP853"
    )
    angle = found["gear.generator.displacement"]
    assert angle == pytest.approx(10.0 * (1.0 - np.cos(3.0 * found.t)), abs=1e-7)
    twist = found["gear.spring.displacement"][-1]
    assert assembly.effort("gear.spring", found.known()) == pytest.approx(2e4 * twist + 5e7 * twist**3, rel=1e-9)
    assert found.supplied[-1] == pytest.approx(found.stored() + found.dissipated[-1], rel=1e-6)
    # the output with both its twist and the error of the teeth
    with_error = angle[-1] / 50.0 + 2e-4 * math.sin(2.0 * angle[-1])
    graph_angle = np.trapezoid(found["arm.flow"], found.t) + twist
    assert graph_angle == pytest.approx(with_error, abs=2e-3)


def test_a_strain_wave_gear_has_the_hysteresis_of_its_closed_form() -> None:
    """Both branches of M_h over the twist, and the energy of a cycle, at any speed: after the first cycles."""
    torque, stiffness, a = 12.0, 6e4, 4e-4
    params = harmonic_drive.Params(50.0, 2e4, hysteresis=torque, hysteresis_stiffness=stiffness)
    parts = {"gear": harmonic_drive.build(params), "motor": Sf(M, given("speed")), "ground": Sf(M, 0.0)}
    graph = graph_of("motor -> gear.input", "gear.output -> ground", inputs={"speed": "rad/s"}, **parts)
    # from the middle out, then two cycles of a second: −a to a to −a
    t = np.linspace(0.0, 2.0, 81)
    rate = 2.0 * math.pi
    found = Simulation(assemble(graph), t, lambda t: {"speed": 50.0 * a * rate * math.cos(rate * t)}, method="DOP853")
    twist = found["gear.spring.displacement"]
    assert twist == pytest.approx(a * np.sin(rate * t), abs=1e-9)
    peak = torque * math.tanh(stiffness * a / torque)
    rising = torque - (torque + peak) * np.exp(-stiffness / torque * (twist + a))
    falling = -torque + (torque + peak) * np.exp(-stiffness / torque * (a - twist))
    held = stiffness * found["gear.hysteresis.stiffness.displacement"]
    steady = t > 1.0
    expected = np.where(np.cos(rate * t) > 0.0, rising, falling)
    assert held[steady] == pytest.approx(expected[steady], abs=2e-3 * torque)
    lost = found.dissipated[-1] - found.dissipated[40]
    assert lost == pytest.approx(4.0 * torque * (a - torque / stiffness * math.tanh(stiffness * a / torque)), rel=2e-3)
    assert found.energy_gap() < 1e-7


def held(params: friction.Params, force: Law) -> Simulation:
    parts = {"push": Se(M, force), "contact": friction.build(params), "inertia": I(M, 0.5)}
    graph = graph_of("push -> contact.body", "contact.body -> inertia", **parts)
    return Simulation(assemble(graph), np.linspace(0.0, 2.5, 26))


def test_bristles_hold_what_should_stick() -> None:
    """A load that rises to 0.9 F_s: bristles hold it to 1e-9 rad/s, the smooth law creeps away."""
    load = Law(lambda t: 2.7 * ops.minimum(t, 1.0), ("t",))
    stuck = held(friction.Params(2.5, static=3.0, bristle_stiffness=2e4, bristle_damping=30.0), load)
    deflection = stuck["contact.stiffness.displacement"]
    assert deflection[-1] == pytest.approx(2.7 / 2e4, rel=1e-6)
    assert abs(stuck["inertia.flow"][22:]).max() < 1e-9
    creeping = held(friction.Params(2.5, model="stribeck", static=3.0), load)
    assert creeping["inertia.flow"][-1] > 1e-3


@pytest.mark.parametrize("speed", [0.02, -0.3])
@pytest.mark.parametrize("model", ["stribeck", "lugre"])
def test_steady_sliding_has_the_friction_of_the_stribeck_curve(model: Any, speed: float) -> None:
    params = friction.Params(
        2.5, model, static=3.0, stribeck_speed=0.01, viscous=0.4, creep_speed=1e-7, bristle_damping=20.0
    )
    assembly = bench(friction.build(params), {"body": ("speed", "rad/s")})
    found = Simulation(assembly, [5.0], lambda _: {"speed": speed})
    expected = math.copysign(2.5 + 0.5 * math.exp(-((speed / 0.01) ** 2)), speed) + 0.4 * speed
    assert assembly.effort("speed", found.known()) == pytest.approx(expected, rel=1e-6)
