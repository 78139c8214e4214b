"""A manipulator on a platform, composed from both models, is the mechanism derived in one."""

import re
from pathlib import Path

import casadi
import numpy as np
import pytest

from cosim.derive.equations.command import read_model
from cosim.derive.equations.components import derived
from cosim.derive.equations.composition import comparison_lines, compose, composed
from tests.derive.equations.derivations import RIGS, assert_equal, states
from tests.kit.levels import one_of_each

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


@one_of_each
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


def test_the_wrench_on_the_base_and_the_efforts_by_the_platform(tmp_path):
    """A lift that accelerates with 2 m/s^2 weighs its arm anew, and its joints as if gravity were 11.81 m/s^2."""
    (tmp_path / "lift.yaml").write_text(LIFT)
    arm, lift = read_model(UR5), read_model(tmp_path / "lift.yaml")
    d = composed(compose(lift, arm, "cabin"))
    q, v = np.array([0.0, *np.linspace(-1, 1, 6)]), np.array([0.3, *np.zeros(6)])
    a = np.array([2.0, *np.zeros(6)])
    wrench, efforts = (evaluated(d, name, q=q, v=v, a=a) for name in ("base_wrench", "platform_effort"))
    mass = sum(link.inertial.mass for link in arm.mechanism.links if link.inertial is not None)
    assert wrench[:3] == pytest.approx([0, 0, mass * 11.81], abs=1e-9)
    assert efforts == pytest.approx(arm.gravity_effort(q[1:]) * 2.0 / 9.81, abs=1e-10)


def test_the_platform_has_the_wrench_as_a_load(parts):
    composition = parts(UR5)
    d, first = composed(composition), composition.dofs[0]
    for state in states(d, 2):
        found = evaluated(d, "inverse_dynamics", **state)
        wrench = evaluated(d, "base_wrench", **state)
        e, (q, v, a) = composition.platform, (state[key] for key in "qva")
        q_c, t = q[composition.coordinates[0]], state.get("t", [0.0])[0]
        alone = e.inverse_dynamics(q_c, v[first], a[first], t) + e.friction_effort(v[first]) + e.spring_effort(q_c)
        turn = np.asarray(e.frame_pose(q_c, *e.tree.frames[composition.frame], t))[:3, :3]
        jacobian = np.asarray(e.frame_jacobian(q_c, *e.tree.frames[composition.frame], t))
        ground = np.concatenate([turn @ wrench[:3], turn @ wrench[3:]])
        assert found[first] == pytest.approx(np.asarray(alone) + jacobian.T @ ground, rel=1e-10, abs=1e-10)


def evaluated(d, name, **state):
    c = d.component(name)
    f = casadi.Function("f", [d.inputs[a] for a in c.arguments], [c.entries])
    return np.asarray(f(*(state[a] for a in c.arguments))).ravel()


LIFT = """\
name: lift
mechanism:
  bodies: [{name: cabin, type: prismatic, axis: [0, 0, 1], mass: 100 kg}]
"""

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


def test_the_sample_platform_carries_a_ur5(command):
    platform = RIGS / "mechanisms" / "platform.yaml"
    code, out, err = command("derive", platform, "both.c", "--equations", "--mount", UR5, "--on", "flange", "--to", "c")
    assert (code, err) == (0, [])
    rows = [line.split() for line in out.partition("composed ")[2].splitlines()[1:]]
    assert [row[0] for row in rows] == [
        "mass_matrix", "coriolis", "gravity", "viscous_friction", "inverse_dynamics", "forward_dynamics",
    ]  # fmt: skip
    assert max(float(row[1]) for row in rows) < 1e-13


def test_the_gravity_of_the_manipulator_does_not_count(command):
    Path("truck.yaml").write_text(TRUCK)
    words = ["--equations", "--on", "bracket", "--mount"]
    _, out, _ = command("derive", "truck.yaml", *words, RIGS / "two_link.yaml", "--to", "c")
    note = "Gravity is that of the platform, [0, 0, -9.81] m/s^2; the [0, -9.81, 0] m/s^2 of two_link does not count."
    assert f" * {note}" in out.splitlines()
    _, out, _ = command("derive", "truck.yaml", *words, UR5, "--to", "c")
    assert "Gravity is" not in out


def test_no_rounding_is_shown(command):
    """Gravity along the flange and back along the ground leaves 1e-15 of the weight on a level slide."""
    Path("carrier.yaml").write_text(CARRIER)
    code, out, _ = command("derive", "carrier.yaml", "--equations", "--mount", RIGS / "two_link.yaml", "--on", "flange")
    assert code == 0
    weight = [line for line in out.splitlines() if line.startswith("  G[")]
    assert [line.split("=")[0].strip() for line in weight] == ["G[3]", "G[4]"]
    assert not re.search(r"e-1\d\*", out)


CARRIER = """\
name: carrier
mechanism:
  bodies:
    - {name: slide, type: prismatic, axis: [1, 0, 0], mass: 80 kg}
    - {name: turn, axis: [0, 0, 1], mass: 20 kg, com: [0, 0.05, 0.2], inertia: [1, 1, 2]}
  frames: [{name: flange, link: turn, origin: {xyz: [0.3, 0.1, 0.5], rpy: [0, 20 deg, 0]}}]
"""


IN_ONE = "Without --mount and --on, a rig with the bodies of both is derived in one; write such a rig"


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
            "--mount: the manipulator has loops or constraints; only trees are composed. " + IN_ONE,
        ),
        (["--mount", "nope.urdf", "--on", "mast"], "--mount: there is no file 'nope.urdf'; name a rig or a robot file"),
        (["--mount", "", "--on", "mast"], "--mount: '.' is a folder; name a rig or a robot file"),
        (["--mount", "arms", "--on", "mast"], "--mount: 'arms' is a folder; name a rig or a robot file"),
        (
            ["--mount", RIGS / "elastic" / "two_link_arm.yaml", "--on", "mast"],
            f"--mount: the manipulator has elastic links, which are not composed. {IN_ONE}",
        ),
        (
            ["--mount", "ship.yaml", "--on", "mast"],
            "--mount: the manipulator has a base that moves by itself. " + IN_ONE,
        ),
        (
            ["--mount", RIGS / "mechanisms" / "solar_array_free.yaml", "--on", "mast"],
            "--mount: body 'craft' of the manipulator moves by a planar joint, so the platform would not carry it; "
            "make joint 'craft' fixed",
        ),
        (
            ["--mount", "satellite.yaml", "--on", "mast"],
            "--mount: body 'hull' of the manipulator moves by a free joint, so the platform would not carry it; "
            "make joint 'hull' fixed",
        ),
        (
            ["--mount", "arm.yaml", "--on", "mast", "--symbols"],
            "--symbols: is not for equations of a platform with a manipulator; take it out",
        ),
    ],
)
def test_bad_input(command, words, said):
    Path("arms").mkdir()
    for name, text in (("truck", TRUCK), ("arm", TRUSS_ARM), ("ship", SHIP), ("satellite", SATELLITE)):
        Path(f"{name}.yaml").write_text(text)
    assert command.refuses("derive", "truck.yaml", "--equations", *words) == [said]
