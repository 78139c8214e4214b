"""A manipulator on a platform, composed from both models, is the mechanism derived in one."""

from pathlib import Path

import casadi
import numpy as np
import pytest

from cosim.derive.equations.command import read_model
from cosim.derive.equations.components import derived
from cosim.derive.equations.composition import comparison_lines, compose, composed
from tests.derive.equations.derivations import RIGS, assert_equal, states

TRUCK = """\
name: truck
mechanism:
  bodies:
    - {name: cart, type: prismatic, axis: [1, 0, 0], mass: 20 kg, damping: 3, stiffness: 40}
    - {name: mast, axis: [0, 0, 1], mass: 5 kg, com: [0.1, 0, 0.5], inertia: [0.3, 0.3, 0.1], friction: 0.5}
    - {name: antenna, axis: [0, 1, 0], origin: {xyz: [0, 0.1, 1]}, mass: 1 kg, com: [0, 0, 0.2], inertia: [0.02, 0.02, 0.01]}
  frames: [{name: bracket, link: mast, origin: {xyz: [0.2, -0.1, 0.6], rpy: [0.3, -0.5, 1]}}]
  springs: [{name: stay, between: [base, mast], points: [[1, 1, 0], [0, 0.1, 0.9]], stiffness: 100, damping: 2, unloaded_length: 0.5}]
"""  # noqa: E501
SHIP = """\
name: ship
mechanism:
  moving_base:
    z: {type: sine, amplitude: 20 cm, frequency: 0.2 Hz}
    roll: {type: sine, amplitude: 10 deg, frequency: 0.3 Hz}
    yaw: {type: sine, amplitude: 15 deg, frequency: 0.1 Hz}
  bodies: [{name: deck, type: fixed, origin: {xyz: [3, 0, 1]}, mass: 1000 kg, inertia: [900, 900, 900]}]
"""
SATELLITE = """\
name: satellite
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: hull, type: free, mass: 50 kg, com: [0.1, 0, 0], inertia: [5, 6, 7]}
"""
TRUSS_ARM = """\
name: crane
mechanism:
  bodies:
    - {name: jib, joint: slew, axis: [0, 0, 1], mass: 2 kg, com: [0.3, 0, 0], inertia: [0.01, 0.05, 0.05], damping: 0.4}
    - {name: trolley, type: prismatic, axis: [1, 0, 0], mass: 1 kg, com: [0, 0, -0.1], inertia: [0.01, 0.01, 0.01]}
    - {name: hook, type: spherical, mass: 0.5 kg, com: [0, 0, -0.4], inertia: [0.002, 0.002, 0.001]}
  springs: [{name: buffer, between: [base, trolley], points: [[0, 0, 0.2], [0.1, 0, 0]], stiffness: 50, damping: 3, unloaded_length: 0.1}]
"""  # noqa: E501
UR5 = RIGS / "robots" / "ur5.urdf"


@pytest.fixture(name="parts", params=[(TRUCK, "bracket"), (SHIP, "deck"), (SATELLITE, "hull"), (TRUCK, "antenna")])
def _parts(request, tmp_path):
    text, frame = request.param
    (tmp_path / "platform.yaml").write_text(text)
    (tmp_path / "arm.yaml").write_text(TRUSS_ARM)

    def made(arm):
        return compose(read_model(tmp_path / "platform.yaml"), read_model(arm or tmp_path / "arm.yaml"), frame)

    return made


@pytest.mark.parametrize("arm", [None, UR5], ids=["crane", "ur5"])
def test_composed_is_derived_in_one(parts, arm):
    composition = parts(arm)
    d = composed(composition)
    for state in states(d):
        found = {}
        for c in d.everything:
            f = casadi.Function("f", [d.inputs[a] for a in c.arguments], [c.entries])
            found[c.name] = np.asarray(f(*(state[a] for a in c.arguments))).ravel()
        assert_equal(d, found, state, 1e-11)


def test_the_manipulator_is_that_of_a_fixed_base(parts):
    """The block of the inertia, whatever the platform is."""
    composition, alone = parts(UR5), read_model(UR5)
    d = composed(composition)
    c = d.component("mass_matrix")
    f = casadi.Function("f", [d.inputs[a] for a in c.arguments], [c.entries])
    n, own = d.model.nv, composition.dofs[1]
    for state in states(d, 2):
        whole = np.asarray(f(*(state[a] for a in c.arguments))).reshape(n, n)
        q = state["q"][composition.coordinates[1]]
        assert whole[np.ix_(own, own)] == pytest.approx(alone.mass_matrix(q), rel=1e-12, abs=1e-14)


def test_a_load_on_the_tool(parts):
    composition = parts(UR5)
    d = composed(composition, frames=["tool0"], load="tool0")
    for line in comparison_lines(d, derived(composition.joined, frames=["tool0"], load="tool0"))[2:]:
        assert float(line.split()[1]) < 1e-11, line


# --- the command ---


def test_the_command(command):
    Path("truck.yaml").write_text(TRUCK)
    words = ["--equations", "--mount", RIGS / "two_link.yaml", "--on", "bracket", "--to", "c"]
    code, out, err = command("derive", "truck.yaml", "both.c", *words)
    assert (code, err) == (0, [])
    assert "compared with the mechanism derived in one, in 5 random states" in out
    said = Path("both.c").read_text()
    assert "Equations of motion of two_link_on_truck." in said
    assert "Composed of a platform and a manipulator on its frame bracket." in said
    assert "void two_link_on_truck_inverse_dynamics(" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mount", "arm.yaml"], "--on: a manipulator is mounted with --mount RIG|ROBOT --on FRAME; give both"),
        (["--on", "bracket"], "--mount: a manipulator is mounted with --mount RIG|ROBOT --on FRAME; give both"),
        (["--mount", "arm.yaml", "--on", "braket"], "--on: frame 'braket' does not exist; did you mean 'bracket'?"),
        (
            ["--mount", "truck.yaml", "--on", "mast"],
            "--mount: 'cart' is a name in the platform and in the manipulator; rename it in one of them",
        ),
        (
            ["--mount", RIGS / "mechanisms" / "four_bar.yaml", "--on", "mast"],
            "--mount: the manipulator has loops or constraints; only trees are composed, derive both in one",
        ),
        (
            ["--mount", RIGS / "elastic" / "two_link_arm.yaml", "--on", "mast"],
            "--mount: the manipulator has elastic links; derive both in one",
        ),
        (
            ["--mount", "ship.yaml", "--on", "mast"],
            "--mount: the manipulator has a base that moves by itself; derive both in one",
        ),
        (
            ["--mount", "arm.yaml", "--on", "mast", "--symbols"],
            "--symbols: is not for equations of a platform with a manipulator; take it out",
        ),
    ],
)
def test_bad_input(command, words, said):
    for name, text in (("truck", TRUCK), ("arm", TRUSS_ARM), ("ship", SHIP)):
        Path(f"{name}.yaml").write_text(text)
    assert command.refuses("derive", "truck.yaml", "--equations", *words) == [said]
