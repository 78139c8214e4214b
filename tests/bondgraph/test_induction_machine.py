"""The induction machine against the T form by hand, published machines and closed forms."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.mechanics.bondgraph import Assembly
from cosim.mechanics.bondgraph.components import induction_machine as machine
from cosim.mechanics.bondgraph.components._current_control import CurrentControl, Inverter
from cosim.mechanics.bondgraph.components._open_loop import OpenLoop, VoltsPerHertz
from tests.bondgraph.simulation import Simulation, bench

S = machine.SCALE
# the squirrel cage machine of gym-electric-motor
GYM = machine.Params(2, 2.9338, 1.355, 143.75e-3, 5.87e-3, 5.87e-3, inertia=1.1e-3)
# 3 hp, 220 V, 60 Hz (Krause, Wasynczuk, Sudhoff and Pekarek, Analysis of Electric Machinery and Drive Systems)
NET = 2.0 * math.pi * 60.0
KRAUSE = machine.Params(2, 0.435, 0.816, 26.13 / NET, 0.754 / NET, 0.754 / NET, inertia=0.089)
KRAUSE_VOLTAGE = 220.0 * math.sqrt(2.0 / 3.0)
OPTIONS: dict[str, Any] = {"method": "DOP853", "rtol": 1e-11}


ON_THE_NET = {"alpha": ("u_alpha", "V"), "beta": ("u_beta", "V"), "shaft": ("load", "N*m")}


def net(amplitude: float, frequency: float) -> Any:
    """Voltages inside at a time; frequency [rad/s]."""
    return lambda t: {
        "u_alpha": S * amplitude * math.cos(frequency * t),
        "u_beta": S * amplitude * math.sin(frequency * t),
    }


def t_form(motor: machine.Params, amplitude: float, frequency: float, load: float) -> Any:
    """d/dt of the flux linkages of stator and rotor (complex, in the stator's axes), the speed; by hand."""
    lm = motor.magnetising_inductance
    matrix = np.array([[lm + motor.stator_leakage, lm], [lm, lm + motor.rotor_leakage]])
    inverse, p = np.linalg.inv(matrix), motor.pole_pairs

    def rates(t: float, x: np.ndarray) -> np.ndarray:
        stator, rotor, w = x[0] + 1j * x[1], x[2] + 1j * x[3], x[4]
        i_s, i_r = inverse @ [stator, rotor]
        d_stator = amplitude * np.exp(1j * frequency * t) - motor.stator_resistance * i_s
        d_rotor = -motor.rotor_resistance * i_r + 1j * p * w * rotor
        torque = 1.5 * p * (np.conj(stator) * i_s).imag
        return np.array([d_stator.real, d_stator.imag, d_rotor.real, d_rotor.imag, (torque - load) / motor.inertia])

    return rates, inverse


@pytest.mark.parametrize(
    ("motor", "amplitude", "frequency", "load", "seconds"),
    [(GYM, 325.0, 2.0 * math.pi * 50.0, 2.0, 0.15), (KRAUSE, KRAUSE_VOLTAGE, NET, 0.0, 0.5)],
    ids=["gym", "krause"],
)
def test_it_starts_on_the_net_as_its_t_form(
    motor: machine.Params, amplitude: float, frequency: float, load: float, seconds: float
) -> None:
    """A direct start, integrated by SciPy: currents and speed, and the energy."""
    rates, inverse = t_form(motor, amplitude, frequency, load)
    t = np.linspace(0.0, seconds, 61)
    by_hand = solve_ivp(rates, (0.0, seconds), np.zeros(5), t_eval=t, atol=1e-12, **OPTIONS).y
    voltages = net(amplitude, frequency)
    assembly = bench(machine.build(motor), ON_THE_NET)
    found = Simulation(assembly, t, lambda t: {**voltages(t), "load": -load}, **OPTIONS)
    current = inverse[0, 0] * (by_hand[0] + 1j * by_hand[1]) + inverse[0, 1] * (by_hand[2] + 1j * by_hand[3])
    for name, values in (("alpha", current.real), ("beta", current.imag)):
        np.testing.assert_allclose(found[f"part.winding_{name}.flow"] / S, values, atol=1e-8 * np.ptp(values))
    np.testing.assert_allclose(found["part.inertia.flow"], by_hand[4], atol=1e-8 * by_hand[4].max())
    assert by_hand[4, -1] > 0.9 * frequency / 2
    assert found.energy_gap() < 1e-9


def test_its_torques_are_as_published() -> None:
    """Chapman, Electric Machinery Fundamentals, 4th edition, examples 7-3 and 7-5 (460 V, 60 Hz, 4 poles): 18.88 A and
    62.8 N·m at a slip of 0.022; 229 N·m at most, at 0.198, with the book's approximation X_Th = X_1."""
    chapman = machine.Params(2, 0.641, 0.332, 26.3 / NET, 1.106 / NET, 0.464 / NET, inertia=1.0)
    voltage = 460.0 * math.sqrt(2.0 / 3.0)
    rated, most = (steady_state(chapman, voltage, NET, (1.0 - slip) * NET / 2) for slip in (0.022, 0.198))
    assert rated["current"] / math.sqrt(2.0) == pytest.approx(18.88, rel=1e-3)  # of rounded impedances
    assert rated["torque"] == pytest.approx(62.8, abs=0.05)
    assert most["torque"] == pytest.approx(229.0, rel=0.01)


def steady_state(motor: machine.Params, amplitude: float, frequency: float, speed: float) -> dict[str, float]:
    """Torque [N·m] and amplitude of the current [A] at a steady speed: at the phasors of the T form, by hand, the
    states of the graph turn with the frequency."""
    lm, p = motor.magnetising_inductance, motor.pole_pairs
    ls, lr = lm + motor.stator_leakage, lm + motor.rotor_leakage
    slipping = 1j * (frequency - p * speed)
    impedances = [[motor.stator_resistance + 1j * frequency * ls, 1j * frequency * lm]]
    impedances += [[slipping * lm, motor.rotor_resistance + slipping * lr]]
    i_s, i_r = np.linalg.solve(np.array(impedances), [amplitude, 0.0])
    flux = lm / lr * (lm * i_s + lr * i_r)
    x = {f"part.winding_{axis}.flow": part for axis, part in zip(("alpha", "beta"), (i_s.real, i_s.imag), strict=True)}
    x |= {f"part.magnetising.momentum_{k + 1}": part for k, part in enumerate((flux.real, flux.imag))}
    x = {name: S * value for name, value in x.items()} | {"part.inertia.flow": speed}
    assembly = bench(machine.build(motor), ON_THE_NET)
    rates, _ = assembly.flow(0.0, x, {"u_alpha": S * amplitude, "u_beta": 0.0, "load": 0.0})
    for name, phasor in (("winding_alpha.flow", i_s), ("magnetising.momentum_1", flux)):
        assert rates[f"part.{name}"] == pytest.approx(S * (1j * frequency * phasor).real, rel=1e-9)
    for name, phasor in (("winding_beta.flow", i_s), ("magnetising.momentum_2", flux)):
        assert rates[f"part.{name}"] == pytest.approx(S * (1j * frequency * phasor).imag, rel=1e-9)
    return {"torque": float(rates["part.inertia.flow"] * motor.inertia), "current": float(abs(i_s))}


@pytest.mark.parametrize("slip", [-0.3, 0.02, 0.1, 0.4])
def test_its_torque_over_the_slip_has_its_closed_form(slip: float) -> None:
    """The formula of Kloss with the resistance of the stator (Kloss 1908; Bödefeld and Sequenz): at the slip s_b of the
    breakdown torque M_b,  M = M_b (2 + 2 a s_b) / (s / s_b + s_b / s + 2 a s_b), motoring."""
    frequency, voltage = 2.0 * math.pi * 50.0, 300.0
    lm, ls = GYM.magnetising_inductance, GYM.magnetising_inductance + GYM.stator_leakage
    # Thévenin's source behind the magnetising inductance
    behind = 1j * frequency * lm / (GYM.stator_resistance + 1j * frequency * ls)
    impedance = behind * (GYM.stator_resistance + 1j * frequency * GYM.stator_leakage)
    r, x, u = impedance.real, impedance.imag + frequency * GYM.rotor_leakage, abs(behind) * voltage
    breakdown_slip = GYM.rotor_resistance / math.hypot(r, x)
    breakdown = 1.5 * 2 / frequency * u * u / (2.0 * (r + math.hypot(r, x)))
    a = 2.0 * r / GYM.rotor_resistance * breakdown_slip  # 2 a s_b
    kloss = breakdown * (2.0 + a) / (slip / breakdown_slip + breakdown_slip / slip + a)
    found = steady_state(GYM, voltage, frequency, (1.0 - slip) * frequency / 2)
    assert found["torque"] == pytest.approx(kloss, rel=1e-6)


SATURABLE = machine.Params(2, 3.7, 2.1, 0.224, 0.021, inertia=0.015, saturation_flux=1.0, saturation_exponent=7.0)


def test_its_inductance_saturates_and_keeps_its_energy() -> None:
    """Direct current, then steady: ψ_R / L_M (1 + (ψ_R / ψ_S)^S) = U / R_s; from the net its energy closes."""
    held = bench(machine.build(replace(SATURABLE, inertia=0.0)), {**ON_THE_NET, "shaft": ("speed", "rad/s")})
    found = Simulation(held, [4.0], lambda _: {"u_alpha": S * 3.7 * 8.0, "u_beta": 0.0, "speed": 0.0}, rtol=1e-9)
    flux = found["part.magnetising.momentum_1"][-1] / S
    assert flux / 0.224 * (1.0 + flux**7) == pytest.approx(8.0, rel=1e-6)
    assert flux < 0.75 * 0.224 * 8.0
    voltages = net(400.0, 2.0 * math.pi * 50.0)
    found = Simulation(
        bench(machine.build(SATURABLE), ON_THE_NET), [0.0, 0.2], lambda t: {**voltages(t), "load": -3.0}, **OPTIONS
    )
    assert found.energy_gap() < 1e-9


# --- controlled along its flux ---

DRIVEN = machine.Params(2, 2.9338, 1.355, 143.75e-3, 5.87e-3, 5.87e-3, flux=0.9)
SATURATED = machine.Params(2, 3.7, 2.1, 0.224, 0.021, saturation_flux=1.0, flux=0.9)


@pytest.mark.parametrize("motor", [DRIVEN, SATURATED], ids=["linear", "saturated"])
@pytest.mark.parametrize("speed", [-40.0, 0.0, 100.0])
def test_it_gives_the_torque_that_it_is_asked_for(motor: machine.Params, speed: float) -> None:
    """At rest, and turned both ways: the flux rises from 0 to what the drive keeps, and the currents are exact."""
    assembly = bench(machine.controlled(motor, CurrentControl(400.0), 1.0), SPEED, request="N*m")
    t = [0.0, 2.0]
    found = Simulation(assembly, t, lambda _: {"speed": speed, "request": 6.0}, method="DOP853", rtol=1e-8)
    known = found.known()
    signals = {name: float(assembly_value(assembly, name, known)) for name in ("rotor_flux", "current_d", "current_q")}
    assert signals["rotor_flux"] == pytest.approx(0.9, rel=1e-6)
    assert 1.5 * 2 * signals["rotor_flux"] * signals["current_q"] == pytest.approx(6.0, rel=1e-6)
    excites = 0.9 / motor.main * (1.0 + (0.9 / motor.saturation_flux) ** 7)
    assert signals["current_d"] == pytest.approx(excites, rel=1e-6)
    assert found.energy_gap() < 1e-6


SPEED = {"shaft": ("speed", "rad/s")}


def assembly_value(assembly: Assembly, signal: str, known: Any) -> Any:
    return known[assembly.variable(f"part.{signal}", "speed")]


def test_its_torque_rises_as_the_closed_loop_of_its_current() -> None:
    """Excited, i_q approaches its setpoint with the rate of its loop, 2π f + (R_s + R_R) / L_σ."""
    control = CurrentControl(300.0)
    motor = replace(DRIVEN, excited=True)
    assembly = bench(machine.controlled(motor, control, 1.0), SPEED, request="N*m")
    t = np.linspace(0.0, 2e-3, 9)
    found = Simulation(assembly, t, lambda _: {"speed": 60.0, "request": 5.4}, method="DOP853", rtol=1e-10)
    rate = control.rate + (motor.stator_resistance + motor.rotor) / motor.leakage
    currents = [float(assembly_value(assembly, "current_q", found.known(k))) for k in range(9)]
    assert currents == pytest.approx(5.4 / (1.5 * 2 * 0.9) * (1.0 - np.exp(-rate * t)), rel=1e-6, abs=1e-8)


def test_its_field_is_weakened_where_the_voltage_limits() -> None:
    control = CurrentControl(400.0, current_limit=20.0, voltage_limit=200.0)
    assembly = bench(machine.controlled(DRIVEN, control, 1.0), SPEED, request="N*m")
    speed = 2.0 * 200.0 / (2 * 0.9)
    found = Simulation(assembly, [2.0], lambda _: {"speed": speed, "request": 1.0}, method="DOP853", rtol=1e-8)
    known = found.known()
    value = {
        n: float(assembly_value(assembly, n, known)) for n in ("rotor_flux", "current_q", "voltage_d", "voltage_q")
    }
    assert 0.3 < value["rotor_flux"] < 0.45
    assert 1.5 * 2 * value["rotor_flux"] * value["current_q"] == pytest.approx(1.0, rel=1e-4)
    assert math.hypot(value["voltage_d"], value["voltage_q"]) <= 200.0


def test_on_a_voltage_over_the_frequency_it_turns_with_its_slip() -> None:
    """V/f without load: synchronous; loaded, it has the slip of its torque, as on the net of that voltage."""
    curve = OpenLoop(mode="velocity", volts_per_hertz=VoltsPerHertz(325.0, 50.0, 10.0))
    graph = machine.with_field(GYM, CurrentControl(400.0), curve)
    assembly = bench(graph, {"shaft": ("load", "N*m")}, field_angle="rad", field_speed="rad/s", on="")
    field = 2.0 * math.pi * 30.0 / 2.0

    def inputs(t: float) -> dict[str, float]:
        return {"load": -3.0, "field_angle": field * t, "field_speed": field, "on": 1.0}

    found = Simulation(assembly, [1.5], inputs, method="DOP853", rtol=1e-9)
    speed = found["part.inertia.flow"][-1]
    voltage = 10.0 + 315.0 * 30.0 / 50.0
    assert steady_state(GYM, voltage, 2.0 * field, speed)["torque"] == pytest.approx(3.0, rel=1e-5)
    assert 0.9 * field < speed < field


def test_three_half_bridges_lack_the_published_fundamental() -> None:
    """−(4/π) t_d f_s U_dc along a current that turns, the mean of six steps, in each axis of a loop that does not
    compensate it: 0 = (R + L_σ ω_c) (i* − i) − Δu (Jeong and Park 1991)."""
    inverter = Inverter(2e-6, 20e3, 500.0, rounding_current=1e-2)
    control = CurrentControl(400.0, inverter=inverter)
    assembly = bench(machine.controlled(replace(DRIVEN, excited=True), control, 1.0), SPEED, request="N*m")
    t = np.linspace(1.0, 1.4, 161)
    found = Simulation(assembly, t, lambda _: {"speed": 30.0, "request": 6.0}, rtol=1e-6, max_step=2e-3)
    names = ("current_d", "current_q", "rotor_flux")
    values = [[assembly_value(assembly, name, found.known(k)) for name in names] for k in range(len(t))]
    i_d, i_q, flux = np.mean(np.array(values, dtype=float), axis=0)
    wanted = np.array([0.9 / DRIVEN.main, 6.0 / (1.5 * 2 * flux)])
    impedance = DRIVEN.stator_resistance + DRIVEN.rotor + DRIVEN.leakage * control.rate
    lacking = (
        4.0
        / math.pi
        * inverter.dead_time
        * inverter.switching_frequency
        * inverter.supply_voltage
        * np.array([i_d, i_q])
        / math.hypot(i_d, i_q)
    )
    assert impedance * (wanted - [i_d, i_q]) == pytest.approx(lacking, abs=0.03 * float(np.hypot(*lacking)))
