"""Parts of a rig that are integrated apart: against the whole in one mechanism, in every engine, and their failures."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cosim import InputErrors, RunError, StoppedRun, load_rig, load_run
from tests.kit.flywheel import flywheel
from tests.kit.given import beside
from tests.kit.refusals import raised, refusal

GIVEN = beside(__file__)

INERTIA, STIFFNESS, SPEED = (0.02, 0.05), 20.0, 5.0
TRACED = flywheel()
IN_PYTHON = flywheel('float(x["twist"])')
RIG = f"""
mechanism:
  gravity: [0, 0, 0]
  bodies: [{{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, {INERTIA[0]}]}}]
joints:
  shaft: {{initial: {{velocity: {SPEED}}}}}
parts:
  - {{name: wheel, type: wheel.py, params: {{inertia: {INERTIA[1]}, stiffness: {STIFFNESS}}}, step: 0.2 ms}}
couplings:
  bonds:
    - {{effort: [wheel.torque, mechanism.shaft/effort], flow: [mechanism.shaft/velocity, wheel.speed]}}
schedule: {{step: 1 ms, duration: 0.5 s}}
"""


@pytest.fixture
def rig_of(tmp_path):
    """The rig with overrides, its text changed by (old, new) pairs."""

    def make(*overrides, part=TRACED, changes=(), **options):
        (tmp_path / "wheel.py").write_text(part)
        text = RIG
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "shaft.yaml").write_text(text)
        return load_rig(tmp_path / "shaft.yaml", overrides, **options)

    return make


def exact(t):
    """Speed of the shaft: both inertias on their spring."""
    first, second = INERTIA
    omega = np.sqrt(STIFFNESS * (1.0 / first + 1.0 / second))
    mean = SPEED * first / (first + second)
    return mean + (SPEED - mean) * np.cos(omega * np.asarray(t))


def total_energy(run):
    first, second = INERTIA
    kinetic = 0.5 * first * run["shaft/velocity"] ** 2 + 0.5 * second * run["wheel/wheel_speed"] ** 2
    return kinetic + 0.5 * run["wheel/torque"] ** 2 / STIFFNESS


COUPLINGS = [("gauss_seidel", 1), ("gauss_seidel", 2), ("jacobi", 0), ("jacobi", 2)]


@pytest.mark.parametrize(("master", "order"), COUPLINGS)
def test_order_of_convergence(rig_of, master, order):
    errors = []
    for step in ("0.5 ms", "0.25 ms"):
        settings = f"couplings.master={master}", f"couplings.order={order}", f"schedule.step={step}"
        run = rig_of(*settings, "parts.wheel.step=0.05 ms").run()
        errors.append(np.abs(run["shaft/velocity"] - exact(run.t)).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order + 1, abs=0.25)
    assert errors[1] < (0.6, 2e-3, 1e-4)[order]


@pytest.mark.parametrize(("master", "order"), COUPLINGS)
def test_residual_energy_is_the_error_of_the_energy_of_the_whole(rig_of, master, order):
    run = rig_of(f"couplings.master={master}", f"couplings.order={order}").run()
    created = total_energy(run) - total_energy(run)[0]
    residual = run["wheel-mechanism/residual_energy"]
    assert np.abs(created).max() > 1e-6
    np.testing.assert_allclose(residual, created, atol=1e-9)
    assert run.summary["bonds"]["wheel-mechanism"]["residual"] == pytest.approx(residual[-1])
    assert run.units["wheel-mechanism/residual_energy"] == "J" and run.units["wheel/torque"] == "N*m"


def test_the_correction_keeps_the_energy(rig_of):
    """With constant inputs Jacobi's scheme creates a fifth of the energy in half a second."""
    settings = "couplings.master=jacobi", "couplings.order=0"
    without = rig_of(*settings).run()
    corrected = rig_of(*settings, "couplings.correction={gain: 1}").run()
    assert abs(total_energy(without)[-1] / total_energy(without)[0] - 1.0) > 0.1
    assert abs(total_energy(corrected)[-1] / total_energy(corrected)[0] - 1.0) < 0.02


def test_the_energy_of_the_mechanism_closes(rig_of):
    run = rig_of().run()
    assert np.abs(run["energy/parts"]).max() > 0.05
    assert run.summary["energy"]["work_of_parts"] == run["energy/parts"][-1]
    assert run.summary["energy"]["residual_relative"] < 1e-12


@pytest.mark.parametrize(("master", "order"), [("gauss_seidel", 2), ("jacobi", 0)])
def test_parts_in_python_and_the_interpreter_equal_compiled_ones(rig_of, master, order):
    settings = f"couplings.master={master}", f"couplings.order={order}", "couplings.correction={gain: 0.5}"
    compiled = rig_of(*settings)
    runs = [compiled.run(0.03)]
    runs.append(rig_of(*settings, part=IN_PYTHON).run(0.03))
    runs.append(rig_of(*settings, interpret=True).run(0.03))
    assert compiled.native
    for name in runs[0].signals:
        for run in runs[1:]:
            np.testing.assert_allclose(run[name], runs[0][name], atol=1e-11, err_msg=name)
    where = runs[1].rig.engine
    assert where["part wheel"].startswith("Python: ") and "wheel.py:" in where["part wheel"]
    assert where["loop"] == "Python: the part 'wheel' is in Python" and runs[0].rig.engine["part wheel"] == "compiled"


def test_a_second_run_and_a_second_start_give_the_same(rig_of):
    rig = rig_of(part=IN_PYTHON)
    first, second = rig.run(0.02), rig.run(0.02)
    np.testing.assert_array_equal(first.values, second.values)
    compiled = [rig_of().run(0.02).values for _ in range(2)]  # the second from the cache
    np.testing.assert_array_equal(*compiled)


def test_rollouts_equal_runs_to_the_bit(rig_of):
    rig = rig_of()
    batch = rig.rollouts(initial={"shaft/velocity": np.array([SPEED, 1.0])}, duration=0.2, keep="all")
    run = rig.run(0.2)
    np.testing.assert_array_equal(batch["wheel/torque"][0], run["wheel/torque"])
    other = rig_of("joints.shaft.initial.velocity=1").run(0.2)
    np.testing.assert_array_equal(batch["wheel/torque"][1], other["wheel/torque"])


def test_a_recording_has_the_signals_of_parts(rig_of, tmp_path):
    run = rig_of().run(0.05, tmp_path / "r.mcap")
    again = load_run(tmp_path / "r.mcap")
    for name in ("wheel/wheel_speed", "wheel-mechanism/power", "wheel-mechanism/residual_energy"):
        np.testing.assert_array_equal(again[name], run[name])
    assert again.rig.bonds == ("wheel-mechanism",)


def test_a_rig_returns_to_a_snapshot_with_compiled_parts_only(rig_of, said):
    engine, ends = rig_of().engine(), []
    engine.run(20)
    snapshot = engine.snapshot()
    for _ in range(2):
        engine.restore(snapshot)
        ends.append(engine.run(30)[0])
    np.testing.assert_array_equal(*ends)
    engine = rig_of(part=IN_PYTHON).engine()
    start = engine.snapshot()
    engine.open()
    engine.arm()
    ends = [engine.run(20)[0]]
    assert len(ends[0]) == 20
    said(raised(RunError, engine.restore, engine.snapshot()))
    engine.restore(start)
    ends.append(engine.run(20)[0])
    engine.close()
    np.testing.assert_array_equal(*ends)


def test_parts_in_python_run_in_real_time_from_their_start(rig_of):
    """The timing pre-check steps them too."""
    settings = "schedule.step=50 ms", "parts.wheel.step=10 ms"
    paced = rig_of(*settings, part=IN_PYTHON, realtime=True).run(0.2)
    free = rig_of(*settings, part=IN_PYTHON).run(0.2)
    for name in free.signals:
        np.testing.assert_array_equal(paced[name], free[name], err_msg=name)


COUNTER = GIVEN["counter"]


def test_a_sampled_part_that_only_listens(rig_of, tmp_path):
    (tmp_path / "counter.py").write_text(COUNTER)
    changes = [
        ("parts:", "parts:\n  - {name: counter, type: counter.py, step: 0.5 ms}"),
        ("  bonds:", "  wires: [{output: mechanism.shaft/position, input: counter.angle}]\n  bonds:"),
    ]
    run = rig_of(changes=changes).run(0.1)
    assert run["counter/count"][-1] == 2 * 100
    # a sample at the middle of the tick, where the angle is interpolated, is held at the end of the tick
    seen, angle = run["counter/seen_1"][2:], run["shaft/position"]
    np.testing.assert_allclose(seen, 0.5 * (angle[1:-1] + angle[2:]), atol=1e-6)
    assert run.units["counter/seen_2"] == "rad"


def test_a_delayed_wire_breaks_an_algebraic_loop(rig_of, tmp_path):
    gain = COUNTER.replace("Counter", "Gain")
    gain = re.sub(r"    inputs = .*?    params", GAIN, gain, flags=re.DOTALL)
    (tmp_path / "gain.py").write_text(gain)
    parts = "parts:\n  - {name: a, type: gain.py}\n  - {name: b, type: gain.py}"
    wires = "  wires: [{output: a.y, input: b.u}, {output: b.y, input: a.u%s}]\n  bonds:"
    with pytest.raises(InputErrors, match=r"algebraic loop a\.y → b\.u → b\.y → a\.u → a\.y; "):
        rig_of(changes=[("parts:", parts), ("  bonds:", wires % "")])
    run = rig_of(changes=[("parts:", parts), ("  bonds:", wires % ", initial: 3")]).run(0.01)
    # a = u + 1, b = u + 1, and a sees b one tick late
    assert run["a/y"][0] == 4.0 and run["b/y"][0] == 5.0
    np.testing.assert_allclose(np.diff(run["b/y"]), 2.0)


GAIN = GIVEN["gain"]


def stopped(rig, duration=0.1):
    """The run that was stopped."""
    return raised(StoppedRun, rig.run, duration).run


@pytest.mark.parametrize("part", [TRACED, IN_PYTHON], ids=["compiled", "in Python"])
def test_residual_energy_beyond_its_limit_stops_the_run(rig_of, said, part):
    run = stopped(rig_of(part=part, changes=[("wheel.speed]}", "wheel.speed], residual_limit: 1e-5}")]))
    residual = run["wheel-mechanism/residual_energy"]
    assert np.abs(residual[:-1]).max() < 1e-5
    assert run.fault.startswith(f"stopped at tick {len(run.t) - 1} (t = ")
    said(run.fault, r"tick \d+ \(t = \S+ s\)", r"is \S+ J")


PD = [
    ("parts:", "controllers: [{type: pid, joints: [shaft], kp: 1, kd: 1, ki: 0}]\nparts:"),
    ("shaft: {initial", "shaft: {actuator: {type: ideal}, limits: {effort: 20}, initial"),
]


@pytest.mark.parametrize(
    ("step", "changes"), [("1 ms", ()), ("0.2 ms", PD)], ids=["alone", "not blamed on the controller"]
)
def test_a_part_that_diverges_is_named(rig_of, said, step, changes):
    run = stopped(rig_of("parts.wheel.params.stiffness=1e9", f"parts.wheel.step={step}", changes=changes), 0.3)
    said(run.fault, r"tick \d+ \(t = \S+ s\)", r"\(at \S+ rad, \S+ rad/s\)", r"'\S+/\S+'")


FAILING = {
    "hangs": ("(x['twist'] if float(t) < 0.01 else time.sleep(30))", "", "import time"),
    "ends the program": ("(x['twist'] if float(t) < 0.01 else sys.exit(3))", "", "import sys"),
    "raises": ("x['twist'] + [0.0][float(t) > 0.0095]", "", ""),
    # in a bond, where its power is computed first
    **{
        f"returns {torque}": (
            "x['twist']",
            f"if float(t) > 0.0095: return {{'twist': 0.0, 'speed': 0.0}}, {{'torque': {torque}, 'wheel_speed': 0.0}}",
            "import numpy as np",
        )
        for torque in ("[1.0, 2.0]", "np.ones(2)", "'x'")
    },
}


@pytest.mark.parametrize("what", FAILING)
def test_a_part_that_fails_is_named(rig_of, said, what):
    """One that hangs is named before the watchdog ends the run."""
    twist, first, imports = FAILING[what]
    limits = ["couplings.time_limit=3", "guard.watchdog=30"] if what == "hangs" else []
    run = stopped(rig_of(*limits, part=flywheel(twist, first=first, imports=imports)))
    assert run.fault.startswith("stopped at tick 9 (t = 0.009 s): ") and len(run.t) == 9
    said(run.fault, r"\(\S*(wheel|layout)\.py:\d+.*\)$")


def test_a_sequence_is_for_gauss_seidel(rig_of, said):
    said(refusal(rig_of, "couplings.master=jacobi", "couplings.sequence=[wheel, mechanism]"))


def test_a_bond_joins_effort_and_flow_of_one_dof(rig_of, said):
    two = ", {name: rod, parent: rotor, joint: elbow, axis: [0, 1, 0], mass: 1 kg, inertia: [1, 1, 1]}]"
    said(refusal(rig_of, changes=[("]}]", "]}" + two), ("mechanism.shaft/velocity", "mechanism.elbow/velocity")]))


def test_the_linearised_rig_has_the_modes_of_the_whole(rig_of):
    """Both inertias on their spring, undamped, besides what the coupling adds."""
    from cosim.apps.analysis.linearisation import linearise

    found = linearise(rig_of("couplings.order=2", "schedule.step=0.25 ms"))
    poles = np.linalg.eigvals(found.A)
    rates = np.log(poles[np.abs(poles) > 0.1].astype(complex)) / 0.25e-3
    omega = np.sqrt(STIFFNESS * sum(1.0 / inertia for inertia in INERTIA))
    assert np.abs(rates - 1j * omega).min() < 2e-3 * omega


def test_gradients_and_numbers_of_the_plant_name_the_part(rig_of, said):
    rig = rig_of(changes=PD)
    said(refusal(rig.gradient, ["iae"], ["pid.kp"]))
    said(refusal(rig.rollouts, {"mechanism.rotor.mass": np.array([1.0, 2.0])}, duration=0.01))
    gains = rig.rollouts({"pid.kp": np.array([1.0, 2.0])}, duration=0.1, signals=["wheel/wheel_speed"])
    assert abs(np.diff(gains["wheel/wheel_speed"][:, -1])[0]) > 1e-3
