"""Elastic links from tables of modes and from functions of x, against the beam and formulas."""

import json

import numpy as np
import pytest

from cosim.core.errors import InputError
from cosim.mechanics.multibody.elastic.modal_link import gram
from cosim.mechanics.multibody.elastic.shape_functions import ShapeFunctions
from cosim.mechanics.multibody.elastic.table import read_elastic_table
from tests.multibody.elastic_files.bodies import TIP, arm, beam, frequencies, swing
from tests.multibody.elastic_files.meshes import AREA, DENSITY, LENGTH

COUNTS = (2, 1, 1, 0)


def sampled(count=101, counts=COUNTS):
    """The arrays of a table of the beam: sections of equal length around its nodes, half ones at the ends. Like the
    beam's they turn by twist alone; a node without mass at the tip, for what is attached, also by bending."""
    theory = beam(counts)
    x = np.linspace(0.0, LENGTH, count)
    part = np.full(count, LENGTH / (count - 1))
    part[[0, -1]] /= 2
    (linear, _), psi = theory.displacements(x)
    inertia = np.stack([about(x) for about in theory.section.inertia], axis=-1) * part[:, None]
    position = np.stack([x, 0 * x, 0 * x], axis=-1)
    return {
        "positions": np.concatenate([position[-1:], position]),
        "masses": np.array([0.0, *(DENSITY * AREA * part)]),
        "inertias": np.concatenate([0.0 * inertia[-1:], inertia]),
        "displacements": np.concatenate([linear[-1:], linear]),
        "rotations": np.concatenate([psi[-1:], psi * [1.0, 0.0, 0.0]]),
        "stiffness": theory.link().stiffness,
    }


def write(folder, arrays, name="modes.npz"):
    path = folder / name
    if name.endswith(".npz"):
        np.savez(path, **arrays)
    else:
        path.write_text(json.dumps({key: np.asarray(value).tolist() for key, value in arrays.items()}))
    return path


def test_a_table_of_a_beam_is_the_beam(tmp_path):
    link, theory = read_elastic_table(write(tmp_path, sampled())), beam(COUNTS).link()
    assert link.mass == pytest.approx(theory.mass, rel=1e-12)
    assert link.inertia == pytest.approx(theory.inertia, rel=1e-3, abs=1e-12)
    assert frequencies(link) == pytest.approx(frequencies(theory), rel=1e-3)
    assert link.displacement(TIP).path.linear == pytest.approx(theory.displacement(TIP).path.linear)
    assert np.abs(swing(link) - swing(theory)).max() < 1e-5


def test_nodes_without_inertia_do_not_resist_turning(tmp_path):
    arrays = sampled(counts=(1, 0, 1, 0))
    del arrays["inertias"]
    with pytest.raises(InputError) as error:
        read_elastic_table(write(tmp_path, arrays))
    assert error.value.what == "mode 2 moves no mass; leave it out"


def test_frequencies_stand_for_the_stiffness(tmp_path):
    arrays = sampled(counts=(2, 1, 0, 0))
    plain = read_elastic_table(write(tmp_path, arrays), damping_ratio=0.01)
    del arrays["stiffness"]
    masses = np.diag(gram(plain.modal))
    arrays["frequencies"] = np.sqrt(np.diag(plain.stiffness) / masses) / (2 * np.pi)
    arrays["damping_ratios"] = np.array([0.01, 0.01, 0.03])
    link = read_elastic_table(write(tmp_path, arrays, "modes.json"))
    assert link.stiffness == pytest.approx(plain.stiffness, abs=1e-9 * plain.stiffness.max())
    ratios = np.diag(link.damping) / np.diag(plain.damping)
    assert ratios == pytest.approx([1.0, 1.0, 3.0], rel=1e-3)
    assert [name for name, _ in link.modes] == ["mode_1", "mode_2", "mode_3"]


def test_second_order_displacements_stiffen_a_turning_beam(tmp_path):
    """With the beam's the table has its centrifugal stiffness, and without them a negative one."""
    arrays = sampled(counts=(1, 0, 0, 0))
    bending = beam((1, 0, 0, 0))
    stiffened = type(bending)(bending.length, bending.section, bending.modes)
    (_, curve), _ = stiffened.displacements(arrays["positions"][:, 0])
    without = read_elastic_table(write(tmp_path, arrays))
    with_it = read_elastic_table(write(tmp_path, arrays | {"second_order": curve}, "stiff.npz"))
    pulls = [pull(link) for link in (without, with_it, stiffened.link())]
    assert pulls[1] == pytest.approx(pulls[2], rel=2e-3)
    assert pulls[0] > 0.0 > pulls[1]


def pull(link):
    """Acceleration of the mode by a small deflection, less the elastic one, at 10 rad/s."""
    model = arm(link)
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    q[1] = 1e-4
    still = model.inverse_dynamics(q, v, np.zeros(model.nv))
    v[0] = 10.0
    return -(model.inverse_dynamics(q, v, np.zeros(model.nv)) - still)[1]


def rod(**changes):
    """Of the flexible slider-crank: two sine modes, and two quadratic functions of the displacement along x."""
    length, section = 0.3, 0.008**2
    along = np.array([[16.0, -8.0], [-8.0, 7.0]]) / 3.0
    stiffness = np.zeros((4, 4))
    stiffness[0, 0], stiffness[1, 1] = np.pi**4 / 24 * (0.008 / length) ** 2, 2 * np.pi**4 / 3 * (0.008 / length) ** 2
    stiffness[2:, 2:] = along
    given = {
        "length": length,
        "mass": lambda x: 7870.0 * section,
        "modes": tuple((f"q{k}", "m") for k in range(1, 5)),
        "linear": lambda x: np.array(
            [
                [0.0, np.sin(np.pi * x / length), 0.0],
                [0.0, np.sin(2 * np.pi * x / length), 0.0],
                [4 * x / length * (1 - x / length), 0.0, 0.0],
                [x / length * (2 * x / length - 1), 0.0, 0.0],
            ]
        ),
        "stiffness": 2e11 * section / length * stiffness,
    }
    return ShapeFunctions(**(given | changes))


def test_functions_of_x_have_the_integrals_of_their_formulas():
    link = rod().link()
    mass = 7870.0 * 0.008**2 * 0.3
    wanted = mass * np.diag([0.5, 0.5, 8 / 15, 2 / 15])
    wanted[2, 3] = wanted[3, 2] = mass / 15
    assert link.mass == pytest.approx(mass, rel=1e-12)
    assert gram(link.modal) == pytest.approx(wanted, abs=1e-9)
    momentum = np.einsum("k,kui->ui", link.modal.fraction, link.modal.linear)
    assert momentum[:, 0] == pytest.approx([0, 0, mass * 2 / 3, mass / 6], abs=1e-12)
    assert momentum[:, 1] == pytest.approx([mass * 2 / np.pi, 0, 0, 0], abs=1e-9)
    assert link.displacement(np.array([0.15, 0, 0])).path.linear[:, 0] == pytest.approx([0, 0, 1, 0], abs=1e-12)


def test_further_mass_is_added_to_that_of_the_modes():
    further = np.diag([0.0, 0.0, 1.0, 2.0])
    plain, heavy = rod().link(), rod(further_mass=further).link()
    assert gram(heavy.modal) - gram(plain.modal) == pytest.approx(further, abs=1e-9)
