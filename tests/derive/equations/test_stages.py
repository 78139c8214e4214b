"""Point masses in place of bodies: equations by hand, and the efforts that both stages differ by."""

from pathlib import Path

import numpy as np
import pytest
import sympy

from cosim.apps.derive.equations.components import derived
from cosim.apps.derive.equations.parameters import with_symbols
from cosim.apps.derive.equations.stages import is_singular, point_masses
from tests.derive.equations.derivations import OWN, RIGS, derivation, states
from tests.derive.equations.reading import read_text, same


def test_the_two_link_arm_of_point_masses():
    d = derivation("two_link")
    equations, parameters = with_symbols(point_masses(d.model.equations))
    found = derived(d.model, equations, parameters=parameters)
    assert not any(p.name.startswith("I_") for p in found.parameters)
    parsed = read_text(found)
    mass, coriolis, gravity = (parsed[name][1] for name in ("mass_matrix", "coriolis", "gravity"))
    m1, m2, c1, c2, length = sympy.symbols("m_upper_arm m_forearm c_upper_arm c_forearm l_elbow")
    g, q1, q2, v1, v2 = sympy.symbols("g q1 q2 v1 v2")
    corner = m1 * c1**2 + m2 * (length**2 + c2**2 + 2 * length * c2 * sympy.cos(q2))
    same(mass, {(1, 1): corner, (1, 2): m2 * (c2**2 + length * c2 * sympy.cos(q2)), (2, 2): m2 * c2**2})
    h = m2 * length * c2 * sympy.sin(q2)
    same(coriolis, {(1,): -h * (2 * v1 * v2 + v2**2), (2,): h * v1**2})
    outer = m2 * g * c2 * sympy.cos(q1 + q2)
    same(gravity, {(1,): (m1 * c1 + m2 * length) * g * sympy.cos(q1) + outer, (2,): outer})


def test_efforts_of_point_masses_in_space():
    """By Newton: the sum of m a·∂r/∂q over the centres of mass, a by the second difference of their positions."""
    model = derivation("robots/ur5.urdf").model
    e, step = point_masses(model.equations), 1e-4
    parts = [(link, link.inertial) for link in model.mechanism.links if link.inertial is not None]
    moving = [(link.name, part) for link, part in parts if e.tree.frames[link.name][0] >= 0]

    def centres(q):
        return np.array([model.frame_pose(q, name) @ [*part.com, 1] for name, part in moving])[:, :3]

    for state in states(derivation("robots/ur5.urdf")):
        q, v, a = state["q"], state["v"], state["a"]
        before, now, after = (centres(q + s * v + 0.5 * s * s * a) for s in (-step, 0.0, step))
        acceleration = (before - 2 * now + after) / step**2 + [0, 0, 9.81]
        slopes = [(centres(q + step * unit) - centres(q - step * unit)) / (2 * step) for unit in np.eye(6)]
        force = np.array([part.mass for _, part in moving])[:, None] * acceleration
        assert e.inverse_dynamics(q, v, a) == pytest.approx([np.sum(force * slope) for slope in slopes], abs=2e-6)


def test_a_joint_on_whose_axis_the_mass_is_has_no_inverse(command):
    assert not is_singular(point_masses(derivation("two_link").model.equations))
    code, out, _ = command(
        "derive", OWN / "spinner.yaml", "spinner.py", "--equations", "--point-masses", "--to", "python"
    )
    assert code == 0
    assert "forward_dynamics" not in out
    said = Path("spinner.py").read_text()
    assert "Without forward_dynamics: some joint moves no point mass, so the inertia has no inverse." in said
    assert "def inverse_dynamics" in said
    assert "def forward_dynamics" not in said


def test_the_difference_at_a_given_state(command):
    code, out, _ = command(
        "derive", RIGS / "two_link.yaml", "--equations", "--point-masses", "--at", "0.5, -1; 1, 2; 3, 4", "--at", "0,0"
    )
    assert code == 0
    # the own inertia of bodies that turn in a plane: I1 a1 + I2 (a1 + a2), I2 (a1 + a2)
    rows = [line.split() for line in out.splitlines()[-4:]]
    assert [row[:2] for row in rows] == [["1", "shoulder"], ["1", "elbow"], ["2", "shoulder"], ["2", "elbow"]]
    assert [float(row[4]) for row in rows] == pytest.approx([-0.028 * 3 - 0.01 * 7, -0.01 * 7, 0, 0], abs=1e-9)
    assert [float(row[3]) - float(row[2]) for row in rows] == pytest.approx([float(row[4]) for row in rows], abs=1e-4)


def test_no_rounding_is_shown(command):
    """A wrist on the vertical carries no weight: its effort at rest is 1e-17 by the sweep."""
    code, out, _ = command("derive", OWN / "wrist.yaml", "--equations", "--point-masses", "--at", "0.3, 0.2")
    assert code == 0
    row = next(line.split() for line in out.splitlines()[-2:] if line.split()[:2] == ["1", "yaw"])
    assert row[2:5] == ["0", "0", "0"]


def test_random_states_without_given_ones(command):
    code, out, _ = command("derive", RIGS / "two_link.yaml", "x.py", "--equations", "--point-masses", "--to", "python")
    assert code == 0
    assert "efforts in 5 random states" in out
    assert out.splitlines()[-1].startswith("elbow ")
    assert "Bodies are point masses at their centres of mass." in Path("x.py").read_text()


@pytest.mark.parametrize(
    "at", ["1", "0,0; 1,2,3", "0,0; x,1", "0,0; 0,0; nan,1", "30 deg, 0", "0,1e400", "0,0;", "0,0;0,0;0,0;0,0"]
)
def test_states_that_are_none(command, said, at):
    said(command.refuses("derive", RIGS / "two_link.yaml", "--equations", "--point-masses", "--at", at))


@pytest.mark.parametrize("words", ["two_link --at 0,0", "elastic/cantilever --point-masses"])
def test_bad_input(command, said, words):
    name, *options = words.split()
    said(command.refuses("derive", RIGS / f"{name}.yaml", "--equations", *options))
