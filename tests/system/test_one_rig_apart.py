"""One rig, whole and apart: one mechanism, a part in the same machine code, a part in Python, an FMU in its own process
and a federate of HELICS move alike, and converge with the step to the exact motion."""

import numpy as np
import pytest

from cosim import load_rig
from cosim.apps.deploy.fmu_export.fmu_file import fmu_of_part
from cosim.rig.federates import with_federates
from tests.kit.flywheel import flywheel

SHAFT, WHEEL, STIFFNESS, SPEED = 0.02, 0.05, 20.0, 5.0  # kg·m², N·m/rad, rad/s
WHOLE = f"""
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, {SHAFT}]}}
    - {{name: disc, joint: twist, parent: rotor, axis: [0, 0, 1], mass: 1 kg, inertia: [0.05, 0.05, {WHEEL}],
       stiffness: {STIFFNESS}}}
joints:
  shaft: {{initial: {{velocity: {SPEED}}}}}
  twist: {{initial: {{velocity: {-SPEED}}}}}
schedule: {{step: 0.1 ms, duration: 0.1 s}}
"""
APART = f"""
mechanism:
  gravity: [0, 0, 0]
  bodies: [{{name: rotor, joint: shaft, axis: [0, 0, 1], mass: 1 kg, inertia: [0.02, 0.02, {SHAFT}]}}]
joints:
  shaft: {{initial: {{velocity: {SPEED}}}}}
parts:
  - PART
couplings:
  bonds:
    - {{effort: [wheel.torque, mechanism.shaft/effort], flow: [mechanism.shaft/velocity, wheel.speed]}}
schedule: {{step: 1 ms, duration: 0.1 s}}
"""
BLOCK = f"{{name: wheel, type: traced.py, params: {{inertia: {WHEEL}, stiffness: {STIFFNESS}}}, step: 0.05 ms}}"
PARTS = {
    "machine code": BLOCK,
    "Python": BLOCK.replace("traced.py", "python.py"),
    "FMU": "{name: wheel, fmu: wheel.fmu}",
    "federate": BLOCK.replace("}, step", "}, federate: load, step"),
}
# an FMU of FMI 2.0 has value and slope of an input in a step; a federate has the order of its part, one shows it
ORDERS = {"machine code": (0, 1, 2), "Python": (0, 2), "FMU": (0, 1), "federate": (1,)}
CASES = [(kind, order) for kind, orders in ORDERS.items() if kind != "machine code" for order in orders]
STEPS = ("2 ms", "1 ms", "0.5 ms")
BOUNDS = (0.15, 5e-3, 2e-4)  # rad/s of 5 rad/s, at 0.5 ms, by order


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The rigs, with the part as files and as an FMU."""
    folder = tmp_path_factory.mktemp("apart")
    (folder / "traced.py").write_text(flywheel())
    (folder / "python.py").write_text(flywheel('float(x["twist"])'))
    (folder / "whole.yaml").write_text(WHOLE)
    for kind, part in PARTS.items():
        (folder / f"{kind}.yaml").write_text(APART.replace("PART", part))
    (folder / "wheel.fmu").write_bytes(fmu_of_part(load_rig(folder / "machine code.yaml"), "wheel", 2))
    return folder


@pytest.fixture(scope="module")
def speeds(folder):
    """(the times, the speed of the shaft) of a rig; each is run once."""
    made = {}

    def of(kind: str, order: int, step: str):
        if (kind, order, step) not in made:
            path, settings = folder / f"{kind}.yaml", (f"couplings.order={order}", f"schedule.step={step}")
            rig = load_rig(path, settings)
            run = (with_federates(rig, path, settings) if kind == "federate" else rig).run()
            made[kind, order, step] = run.t, run["shaft/velocity"]
        return made[kind, order, step]

    return of


def exact(t):
    omega = np.sqrt(STIFFNESS * (1.0 / SHAFT + 1.0 / WHEEL))
    mean = SPEED * SHAFT / (SHAFT + WHEEL)
    return mean + (SPEED - mean) * np.cos(omega * np.asarray(t))


def test_the_whole_mechanism_has_the_exact_motion(folder):
    run = load_rig(folder / "whole.yaml").run()
    np.testing.assert_allclose(run["shaft/velocity"], exact(run.t), atol=1e-8)


@pytest.mark.parametrize("order", ORDERS["machine code"])
def test_the_error_falls_with_the_step(speeds, order):
    errors = [np.abs(v - exact(t)).max() for t, v in (speeds("machine code", order, step) for step in STEPS)]
    assert np.log2(errors[1] / errors[2]) == pytest.approx(order + 1, abs=0.25)
    assert errors[2] < BOUNDS[order]


@pytest.mark.parametrize(("kind", "order"), CASES)
def test_all_ways_give_the_same_motion(speeds, kind, order):
    _, one = speeds("machine code", order, "1 ms")
    _, other = speeds(kind, order, "1 ms")
    np.testing.assert_allclose(other, one, rtol=0.0, atol=1e-11)
