"""Drives with their own steps: order, stiff drives against Radau, SIMD lanes, events, energies and bad input."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.core.compile import ArrayPort, compile
from cosim.core.errors import InputErrors
from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.rig.run.run_warnings import step_error_warnings
from cosim.simulation.plant import multirate
from tests.kit.refusals import raised
from tests.plant.event_runs import FOUR_BAR, EventRun, with_events
from tests.plant.test_integration import ARM, March, order_of

MULTIRATE = "schedule.integrator=multirate"
# two elastic stages with backlash and friction that grows with the load, and bristle friction
STIFF = """
    type: drive
    motor: {type: pmsm, pole_pairs: 7, resistance: 0.5, inductance_d: 0.5 mH, inductance_q: 0.6 mH, flux: 0.009,
            inertia: 0.06 kg*cm^2}
    control: {bandwidth: 400 Hz, current_limit: 10 A, voltage_limit: 27 V}
    gears:
      - {ratio: 10, stiffness: 80, damping: 0.01, backlash: 0.2 deg, inertia: 0.3 kg*cm^2, load_friction: 0.03}
      - {ratio: 10, stiffness: 1200, damping: 0.3, backlash: 0.05 deg, inertia: 2 kg*cm^2, load_friction: 0.03}
    friction: {coulomb: 0.9, static: 1.2, viscous: 0.6, bristle_stiffness: 3000, bristle_damping: 5}
"""
AXIS = f"""
mechanism:
  gravity: [0, 0, 0]
  bodies: [{{name: load, mass: 1 kg, inertia: [1, 1, 0.003]}}]
joints:
  load:
   actuator: {STIFF}
"""
# five like drives, whose numbers differ so that some are 1 or 2 and vanish from products
FIVE = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: a, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: b, parent: a, mass: 1 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01], origin: {xyz: [0.4, 0, 0]}}
    - {name: c, mass: 1 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: d, mass: 1 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: e, mass: 1 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01]}
joints:
  a: {actuator: &drive {type: dc_motor, resistance: 1, inductance: 5 mH, torque_constant: 0.05, rotor_inertia: 1e-4,
      ratio: 50, stiffness: 800, damping: 0.4, coulomb: 0.1}}
  b: {actuator: {<<: *drive, resistance: 2, ratio: 40}}
  c: {actuator: {<<: *drive, resistance: 0.5, inductance: 1 mH, damping: 1}}
  d: {actuator: {<<: *drive, stiffness: 1000}}
  e: {actuator: {<<: *drive, torque_constant: 0.07}}
"""


def follow(rig, efforts):
    """(ticks + 1, nx) states of the plant with these efforts requested of its first drive."""
    model = rig.tick_model
    ports = [ArrayPort("t", ()), ArrayPort("x", (model.nx,)), ArrayPort("request", (model.nv,))]
    advance = compile(model.advance, ports, "advance", interpret=False)
    states = [model.plant.layout.pack(model.plant.initial())]
    for k, effort in enumerate(efforts):
        states.append(np.array(advance(k * model.step, states[-1], np.eye(model.nv)[0] * effort)))
    return np.array(states)


def test_a_stiff_drive_follows_radau_at_steps_of_1_ms(rig_of):
    """One step of the drive per tick; the plant of the reference has no states of the integrator."""
    efforts = 8.0 * np.sin(2.0 * np.pi * 8e-3 * np.arange(60))
    rig = rig_of(AXIS, MULTIRATE)
    found, layout = follow(rig, efforts), rig.tick_model.plant.layout
    assert found[-1][layout.place("drive_steps", "unconverged").where] <= 2
    exact = rig_of(AXIS)
    flow, to = exact.tick_model.integration.flow, exact.tick_model.plant.layout
    ports = [ArrayPort("t", ()), ArrayPort("x", (to.size,)), ArrayPort("request", (1,))]
    rate = compile(flow, ports, "flow", interpret=False)
    x = to.pack(exact.tick_model.plant.initial())
    reference = [x]
    for effort in efforts:
        request = np.array([effort])
        x = solve_ivp(lambda t, x, u=request: rate(t, x, u), (0, 1e-3), x, "Radau", rtol=1e-6, atol=1e-8).y[:, -1]
        reference.append(x)
    reference = np.array(reference)
    for what, bound in (("position", 1e-3), ("velocity", 1e-2)):
        mine, true = found[:, layout.place(what).where], reference[:, to.place(what).where]
        assert np.abs(mine - true).max() < bound * np.ptp(true)


def test_steps_of_the_mechanism_have_order_2(rig_of):
    """A prescribed and a driven joint under gravity; the reference is rk4 with fine steps."""
    reference = March(rig_of(ARM, "schedule.integrator=rk4"))
    ends = reference.to(0.1, 5_000)[:2]
    march = March(rig_of(ARM, MULTIRATE))
    errors = [np.abs(march.to(0.1, n)[:2] - ends).max() for n in (50, 100, 200)]
    assert order_of(errors) == pytest.approx(2.0, abs=0.25) and errors[-1] < 1e-4


def test_like_drives_in_lanes_and_one_by_one_are_equal(rig_of):
    """In Python each drive is by itself."""
    settings = MULTIRATE, "schedule.duration=0.01 s"
    rig = rig_of(FIVE, *settings)
    assert [like.count for like in rig.tick_model.integration._multirate.bank.classes] == [5]
    found, apart = rig.run(), rig_of(FIVE, *settings, interpret=True).run()
    np.testing.assert_allclose(apart.values, found.values, rtol=1e-7, atol=1e-9)


def test_rollouts_equal_runs(rig_of):
    text = FIVE + "controllers: [{name: hold, type: feedforward_pd, joints: [a], kp: [20], kd: [1]}]"
    rig = rig_of(text.replace("ratio: 50", "ratio: 30"), MULTIRATE, "schedule.duration=0.02 s")
    gains, signals = {"hold.kp": [[10.0], [20.0], [40.0]]}, ["a/position", "e/velocity"]
    batch = rig.rollouts(parameters=gains, keep="all", signals=signals)
    for k, gain in enumerate((10.0, 20.0, 40.0)):
        run = rig.run(parameters={"hold.kp": [gain]})
        for name in signals:
            np.testing.assert_array_equal(batch.samples[name][k], run[name])


HOVER = """
mechanism:
  bodies:
    - {name: hull, type: free, mass: 3 kg, inertia: [0.02, 0.03, 0.04]}
    - {name: wheel, parent: hull, mass: 0.5 kg, com: [0.1, 0, 0], inertia: [1e-3, 2e-3, 3e-3], axis: [1, 0, 0],
       friction: 0.02, damping: 0.05}
joints:
  hull.rz: {initial: {velocity: 2}}
  wheel: {actuator: {type: dc_motor, resistance: 1, inductance: 5 mH, torque_constant: 0.05, rotor_inertia: 1e-4,
          ratio: 50, stiffness: 800, damping: 0.4}, initial: {velocity: 3}}
"""


def test_a_free_body_and_friction_of_joints(rig_of):
    settings = "schedule.duration=0.3 s", "schedule.step=0.5 ms"
    found = rig_of(HOVER, MULTIRATE, *settings, "schedule.substeps=8").run()
    exact = rig_of(HOVER, *settings, "schedule.substeps=8").run()
    for name in ("hull.rz/position", "hull.z/position", "wheel/position", "wheel/velocity"):
        np.testing.assert_allclose(found[name], exact[name], atol=2e-4 * np.ptp(exact[name]))
    assert found.summary["energy"]["residual_relative"] < 1e-4


@pytest.mark.parametrize("event", ["do: latch, of: a, at: 0.0123", "do: brake, of: a, at: 0.0123, effort: 30"])
def test_events(rig_of, event):
    """A latch locks the joint; a brake slips, then sticks."""
    text = with_events([event], ARM.replace("  b: {p", "  # {p"), "step: 1 ms, duration: 0.1 s")
    found, exact = EventRun(rig_of(text, MULTIRATE)), EventRun(rig_of(text, "schedule.substeps=8"))
    for name in ("a/position", "b/position"):
        np.testing.assert_allclose(found[name], exact[name], atol=2e-3 * np.ptp(exact[name]))
    held = np.ptp(found["a/position"][-20:])
    assert held < 1e-12


def test_energies_of_prescribed_joints(rig_of):
    """Work of the motion that is imposed, and of the drive."""
    run = rig_of(ARM, MULTIRATE, "schedule.duration=1 s").run()
    exact = rig_of(ARM, "schedule.duration=1 s", "schedule.substeps=4").run()
    for name in ("energy/work", "energy/dissipated"):
        assert run[name][-1] == pytest.approx(exact[name][-1], rel=1e-3)
    assert run.summary["energy"]["residual_relative"] < 1e-4


def test_the_linear_step_is_that_of_the_table(rig_of):
    """What the analysis of stability takes for the method."""
    text = "mechanism: {gravity: [0, 0, 0], bodies: [{name: a, mass: 1, inertia: [1, 1, 0.1], damping: 3}]}"
    rig = rig_of(text + "\njoints: {a: {initial: {velocity: 1}}}", MULTIRATE)
    x = rig.tick_model.plant.layout.pack(rig.tick_model.plant.initial())
    end = np.asarray(rig.tick_model.integration.advance(0.0, x, np.zeros(1), 0.05))
    z, g = -3 / 0.1 * 0.05, 1 - 1 / np.sqrt(2)
    place = rig.tick_model.plant.layout.place("velocity").where
    assert end[place] == pytest.approx((1 + (1 - 2 * g) * z) / (1 - g * z) ** 2, rel=1e-9)
    assert INTEGRATORS["multirate"].multirate


@pytest.mark.parametrize(
    ("text", "more"), [(FOUR_BAR, ()), (ARM, ("schedule.substeps=auto",))], ids=["loop", "tolerance"]
)
def test_loops_and_unknown_tolerances_are_refused(rig_of, text, more, said):
    said(raised(InputErrors, rig_of, text, MULTIRATE, *more))


def test_steps_that_do_not_converge_are_counted_and_warned_of(rig_of, monkeypatch, said):
    monkeypatch.setattr(multirate, "MAX_ITERATIONS", 1)
    text = AXIS.replace("load:\n", "load:\n   initial: {velocity: 5}\n")
    run = rig_of(text, MULTIRATE, "schedule.duration=0.005 s", interpret=True).run()
    assert run.summary["unconverged"] == run["steps/unconverged"][-1] > 0
    said(step_error_warnings(run.summary), r"^\d+")


RUBBING = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: a, mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01]}
    - {name: b, parent: a, mass: 0.5 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01], origin: {xyz: [0.4, 0, 0]}}
joints:
  a: {actuator: {type: dc_motor, resistance: 1, inductance: 5 mH, torque_constant: 0.05, rotor_inertia: 1e-4, ratio: 50,
      stiffness: 800, damping: 0.4}, friction: {coulomb: 1, static: 1.5, bristle_stiffness: 2e4, bristle_damping: 20,
      viscous: 0.1, load_friction: 0.05}}
  b: {initial: {position: 0.4}, friction: {coulomb: 0.3, bristle_stiffness: 1e4}}
"""


def test_friction_with_stiction_of_joints_with_and_without_a_drive(rig_of):
    """The arm falls, slides and comes to rest on its bristles."""
    found = rig_of(RUBBING, MULTIRATE, "schedule.substeps=2", "schedule.duration=1.5 s").run()
    exact = rig_of(RUBBING, "schedule.integrator=rodas4", "schedule.substeps=auto", "schedule.duration=1.5 s").run()
    for name in ("a/position", "b/position", "a/velocity"):
        np.testing.assert_allclose(found[name], exact[name], atol=5e-3 * np.ptp(exact[name]), err_msg=name)
    assert found.summary["energy"]["residual_relative"] < 1e-3


def test_it_is_the_fix_for_detailed_drives_at_explicit_steps(rig_of, said):
    """Before the run, and by the tick of a controller that holds the joint."""
    (unstable,), _ = rig_of(AXIS + "controllers: [{type: feedforward_pd, kp: 20, kd: 1}]").warnings
    said(unstable, r"(?<=constant of )\S+", r"(?<=substeps: )\d+")


def test_stiff_springs_of_joints_are_stable(rig_of):
    """An oscillator at 6000 rad/s in steps of 1 ms comes to rest where its weight is."""
    text = """
mechanism:
  gravity: [0, 0, -9.81]
  bodies: [{name: a, type: prismatic, axis: [0, 0, 1], mass: 1 g, stiffness: 4e4, damping: 0.05}]
joints: {a: {initial: {position: 1e-4}}}
"""
    run = rig_of(text, MULTIRATE, "schedule.duration=0.5 s").run()
    assert run["a/position"][-1] == pytest.approx(-9.81e-3 / 4e4, rel=1e-6)
