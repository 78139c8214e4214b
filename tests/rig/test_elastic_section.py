"""The section `mechanism.elastic` of a rig: what it becomes, and what is said of one that is wrong."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csc_matrix, save_npz

from cosim.mechanics.multibody.model import Model
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.refusals import refusal

ARM = """\
mechanism:
  bodies:
    - {name: arm, joint: shoulder}
    - {name: load, type: fixed, parent: arm, origin: {xyz: [1, 0, 0]}, mass: 1 kg}
"""
SECTION = "length: 1, section: {shape: circle, diameter: 1 cm}"
MATERIAL = "density: 2700, youngs_modulus: 70 GPa"
BEAM = f"{SECTION}, {MATERIAL}, modes: {{bend_y: 1}}"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(*entries, bodies=ARM):
    """The mechanism with these entries of the section, from line 6 on."""
    Path("rig.yaml").write_text(f"{bodies}  elastic:\n" + "".join(f"    - {{{entry}}}\n" for entry in entries))
    return read_rig("rig.yaml").mechanism.description


def beam(keys, **more):
    return read(f"link: arm, beam: {{{keys}}}", **more)


def test_a_beam_has_the_mass_of_its_section_and_dofs_of_its_own():
    modes = "modes: {bend_y: 2, bend_z: 1, twist: 1, stretch: 1}"
    found = beam(f"length: 1, section: {{shape: tube, diameter: 40 mm, wall: 2 mm}}, {MATERIAL}, {modes}")
    area = np.pi / 4 * (0.04**2 - 0.036**2)
    assert found.links[1].mass == pytest.approx(2700 * area, rel=1e-12)
    names = "bend_y_1", "bend_y_2", "bend_z_1", "twist_1", "stretch_1"
    assert Model(found).dof_names == ("shoulder", *(f"arm.{mode}" for mode in names))
    assert Model(found).dof_units == ("rad", "m", "m", "m", "rad", "m")


@pytest.mark.parametrize(
    ("section", "area", "about_y", "about_z", "torsion"),
    [
        ("rectangle, width: 20 mm, height: 10 mm", 2e-4, 1.6667e-9, 6.6667e-9, 4.577e-9),
        ("circle, diameter: 20 mm", 3.1416e-4, 7.854e-9, 7.854e-9, 1.5708e-8),
        ("tube, diameter: 20 mm, wall: 1 mm", 5.969e-5, 2.7009e-9, 2.7009e-9, 5.4019e-9),
        ("box, width: 20 mm, height: 10 mm, wall: 1 mm", 5.6e-5, 8.9867e-10, 2.7787e-9, 2.089e-9),
    ],
)
def test_sections_have_the_moments_of_handbooks(section, area, about_y, about_z, torsion):
    """The natural frequencies of a cantilever are (1.8751/L)² √(EI/ρA) in both directions, π/2L √(GJ/ρI_x) in twist."""
    keys = f"length: 1, section: {{shape: {section}}}, {MATERIAL}, modes: {{bend_y: 1, bend_z: 1, twist: 1}}"
    link = next(link for link in beam(keys).links if link.elastic is not None).elastic
    masses = np.diag(link.modal.rest_mass + np.einsum("kui,kvi->uv", link.modal.linear, link.modal.linear))
    squares = np.diag(link.stiffness) / masses
    E, G = 70e9, 70e9 / 2.6
    bending = 1.8751**4 * E * np.array([about_z, about_y]) / (2700 * area)
    twisting = (np.pi / 2) ** 2 * G * torsion / (2700 * (about_y + about_z))
    assert link.mass == pytest.approx(2700 * area, rel=1e-3)
    assert squares == pytest.approx([*bending, twisting], rel=1e-3)


def test_a_tapered_beam_has_the_mass_of_a_frustum():
    root, tip = (f"{{shape: circle, diameter: {size}}}" for size in ("4 cm", "1 cm"))
    found = beam(f"length: 1, section: {root}, tip_section: {tip}, {MATERIAL}, modes: {{bend_y: 1}}")
    assert found.links[1].mass == pytest.approx(2700 * np.pi / 12 * (0.04**2 + 0.04 * 0.01 + 0.01**2), rel=1e-12)


def test_the_mass_of_the_link_is_replaced_and_a_note_says_so():
    with_mass = ARM.replace("joint: shoulder}", "joint: shoulder, mass: 2 kg, inertia: [1, 1, 1]}")
    found = beam(BEAM, bodies=with_mass)
    assert found.links[1].inertial is None
    (note,) = [note for note in found.notes if "replaced" in note]
    replaced = "link 'arm': its mass of 2 kg is replaced by the mass of its beam, 0.2121 kg"
    assert note == f"rig.yaml:6 mechanism.elastic[0]: {replaced}"


def test_the_frame_of_a_beam_in_its_link():
    """A beam along z of its link: the load at its tip hangs 1 m from the axis."""
    along_z = ARM.replace("xyz: [1, 0, 0]", "xyz: [0, 0, 1]")
    found = read(f"link: arm, origin: {{rpy: [0, -90 deg, 0]}}, beam: {{{BEAM}}}", bodies=along_z)
    model = Model(found, gravity=(0, 0, 0))
    q = np.array([0.0, 0.01])
    assert model.frame_pose(q, "load")[:3, 3] == pytest.approx([0, 0.01, 1], abs=1e-4)


def test_modes_from_a_table(said):
    """A rod of 1 kg whose tip moves by 1 m per unit of its mode, of 5 Hz."""
    np.savez(
        "rod.npz",
        positions=[[0.0, 0, 0], [0.5, 0, 0], [1.0, 0, 0]],
        masses=[0.25, 0.5, 0.25],
        displacements=[[[0.0, 0, 0]], [[0.0, 0.3, 0]], [[0.0, 1, 0]]],
        frequencies=[5.0],
    )
    model = Model(read("link: arm, table: {file: rod.npz, mass: 1 kg}"))
    assert model.dof_names == ("shoulder", "arm.mode_1")
    said(refusal(read, "link: arm, table: {file: rod.npz, mass: 2 kg}"))
    Path("rod.npz").write_text("no archive")
    said(refusal(read, "link: arm, table: {file: rod.npz}"))


def test_a_mode_that_is_the_motion_of_the_joint(said):
    positions = np.array([[0.0, 0, 0], [0.5, 0, 0], [1.0, 0, 0]])
    turn = [[[0.0, x, 0.0]] for x in positions[:, 0]]
    np.savez("rod.npz", positions=positions, masses=[0.25, 0.5, 0.25], displacements=turn, frequencies=[5.0])
    turning = ARM.replace("joint: shoulder", "joint: shoulder, axis: [0, 0, 1]")
    said(refusal(lambda: Model(read("link: arm, table: {file: rod.npz}", bodies=turning))))


def test_modes_from_matrices(said):
    """Two nodes of 3 dofs and a spring between them."""
    masses, stiffness = np.diag([1.0, 1, 1, 2, 2, 2]), 100.0 * np.kron([[1.0, -1], [-1, 1]], np.eye(3))
    for name, matrix in {"M": masses, "K": stiffness}.items():
        save_npz(f"{name}.npz", csc_matrix(matrix))
    Path("nodes.csv").write_text("node,x,y,z\n1,0,0,0\n2,1,0,0\n")
    files = "mass: M.npz, stiffness: K.npz, nodes: nodes.csv"
    for keys in (
        f"{files}, root: [1], interfaces: {{tip: 2}}, modes: 3",
        f"{files.replace('K.npz', 'L.npz')}, root: [1]",
        f"{files}, root: [7]",
        *(
            f"{files}, root: [1], stiffening: {stiffening}"
            for stiffening in (
                "{spin: {w: M.npz}}",
                "{force: {tip: {x: 3}}}",
                "{spin: {x: G.npz}}",
                "{force: {top: {x: M.npz}}}",
            )
        ),
    ):
        said(refusal(read, f"link: arm, finite_elements: {{{keys}}}"))
