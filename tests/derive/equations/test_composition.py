"""A manipulator on a platform, composed from both models, is the mechanism derived in one."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from cosim.apps.derive.equations.components import derived
from cosim.apps.derive.equations.composition import comparison_lines, compose, composed
from cosim.apps.derive.plant_model import read_model
from tests.derive.equations.derivations import OWN, RIGS, assert_equal, evaluated, states, values_of

UR5 = RIGS / "robots" / "ur5.urdf"


FRAMES = {"truck": "bracket", "ship": "deck", "satellite": "hull"}


@pytest.fixture(name="parts", params=FRAMES)
def _parts(request):
    def made(arm=OWN / "crane.yaml"):
        return compose(read_model(OWN / f"{request.param}.yaml"), read_model(arm), FRAMES[request.param])

    return made


ARMS = OWN / "crane.yaml", OWN / "sprung_arm.yaml", RIGS / "mechanisms" / "coupled_wrist.yaml"


@pytest.mark.parametrize("arm", ARMS, ids=[arm.stem for arm in ARMS])
def test_composed_is_derived_in_one(parts, arm):
    composition, alone = parts(arm), read_model(arm)
    d, own = composed(composition), composition.dofs[1]
    for state in states(d):
        assert_equal(d, values_of(d, state), state, 1e-11)
        whole = evaluated(d, "mass_matrix", **state).reshape(d.model.nv, d.model.nv)
        inertia = alone.mass_matrix(state["q"][composition.coordinates[1]])  # with the rotors of geared drives
        assert whole[np.ix_(own, own)] == pytest.approx(inertia, rel=1e-12, abs=1e-14)


def test_the_manipulator_is_that_of_a_fixed_base_and_the_platform_has_its_wrench_as_a_load(parts):
    composition, alone = parts(UR5), read_model(UR5)
    d, (first, own) = composed(composition), composition.dofs
    n, e = d.model.nv, composition.platform
    for state in states(d, 2):
        # the block of the inertia, whatever the platform is
        whole, q = evaluated(d, "mass_matrix", **state).reshape(n, n), state["q"][composition.coordinates[1]]
        assert whole[np.ix_(own, own)] == pytest.approx(alone.mass_matrix(q), rel=1e-12, abs=1e-14)
        found, wrench = (evaluated(d, name, **state) for name in ("inverse_dynamics", "base_wrench"))
        q, v, a = (state[key] for key in "qva")
        q_c, t = q[composition.coordinates[0]], state.get("t", [0.0])[0]
        alone_c = e.inverse_dynamics(q_c, v[first], a[first], t) + e.friction_effort(v[first])
        turn = np.asarray(e.frame_pose(q_c, *e.tree.frames[composition.frame], t))[:3, :3]
        jacobian = np.asarray(e.frame_jacobian(q_c, *e.tree.frames[composition.frame], t))
        ground = np.concatenate([turn @ wrench[:3], turn @ wrench[3:]])
        assert found[first] == pytest.approx(np.asarray(alone_c) + jacobian.T @ ground, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("parts", ["ship"], indirect=True)
def test_a_load_on_the_tool(parts):
    composition = parts(UR5)
    d = composed(composition, frames=["tool0"], load="tool0")
    for line in comparison_lines(d, derived(composition.joined, frames=["tool0"], load="tool0"))[2:]:
        assert float(line.split()[1]) < 1e-11, line


def test_the_wrench_on_the_base_and_the_efforts_by_the_platform():
    """A lift that accelerates with 2 m/s^2 weighs its arm anew, and its joints as if gravity were 11.81 m/s^2."""
    arm, lift = read_model(UR5), read_model(OWN / "lift.yaml")
    d = composed(compose(lift, arm, "cabin"))
    q, v = np.array([0.0, *np.linspace(-1, 1, 6)]), np.array([0.3, *np.zeros(6)])
    a = np.array([2.0, *np.zeros(6)])
    wrench, efforts = (evaluated(d, name, q=q, v=v, a=a) for name in ("base_wrench", "platform_effort"))
    mass = sum(link.inertial.mass for link in arm.mechanism.links if link.inertial is not None)
    assert wrench[:3] == pytest.approx([0, 0, mass * 11.81], abs=1e-9)
    assert efforts == pytest.approx(arm.gravity_effort(q[1:]) * 2.0 / 9.81, abs=1e-10)


def test_the_command(command):
    words = ["--equations", "--mount", RIGS / "two_link.yaml", "--on", "bracket", "--to", "c"]
    out = command.prints("derive", OWN / "truck.yaml", "both.c", *words)
    assert "compared with the mechanism derived in one, in 5 random states" in out
    said = Path("both.c").read_text()
    assert "Equations of motion of two_link_on_truck." in said
    assert "Composed of a platform and a manipulator on its frame bracket." in said
    assert "void two_link_on_truck_inverse_dynamics(" in said


def test_the_sample_platform_carries_a_ur5(command):
    platform = RIGS / "mechanisms" / "platform.yaml"
    out = command.prints("derive", platform, "both.c", "--equations", "--mount", UR5, "--on", "flange", "--to", "c")
    rows = [line.split() for line in out.partition("composed ")[2].splitlines()[1:]]
    assert [row[0] for row in rows] == [
        "mass_matrix", "coriolis", "gravity", "viscous_friction", "inverse_dynamics", "forward_dynamics",
    ]  # fmt: skip
    assert max(float(row[1]) for row in rows) < 1e-13


def test_the_gravity_of_the_manipulator_does_not_count(command):
    words = ["--equations", "--on", "bracket", "--mount"]
    _, out, _ = command("derive", OWN / "truck.yaml", *words, RIGS / "two_link.yaml", "--to", "c")
    note = "Gravity is the platform's, [0, 0, -9.81] m/s^2; the [0, -9.81, 0] m/s^2 of two_link does not count."
    assert f" * {note}" in out.splitlines()
    _, out, _ = command("derive", OWN / "truck.yaml", *words, UR5, "--to", "c")
    assert "Gravity is" not in out


def test_no_rounding_is_shown(command):
    """Gravity along the flange and back along the ground leaves 1e-15 of the weight on a level slide."""
    words = ["--equations", "--mount", RIGS / "two_link.yaml", "--on", "flange"]
    code, out, _ = command("derive", OWN / "carrier.yaml", *words)
    assert code == 0
    weight = [line for line in out.splitlines() if line.startswith("  G[")]
    assert [line.split("=")[0].strip() for line in weight] == ["G[3]", "G[4]"]
    assert not re.search(r"e-1\d\*", out)


BAD = [
    "--mount crane.yaml",
    "--on bracket",
    "--mount crane.yaml --on braket",
    "--mount truck.yaml --on mast",
    "--mount nope.urdf --on mast",
    "--mount '' --on mast",
    "--mount arms --on mast",
    "--mount ship.yaml --on mast",
    "--mount satellite.yaml --on mast",
    "--mount crane.yaml --on mast --symbols",
    "--mount rigs/mechanisms/four_bar.yaml --on mast",
    "--mount rigs/mechanisms/solar_array_free.yaml --on mast",
    "--mount rigs/elastic/two_link_arm.yaml --on mast",
]


@pytest.mark.parametrize("words", BAD)
def test_bad_input(command, said, words):
    Path("arms").mkdir()
    Path("rigs").symlink_to(RIGS)
    shutil.copytree(OWN, ".", dirs_exist_ok=True)
    said(command.refuses("derive", "truck.yaml", "--equations", *shlex.split(words)))
