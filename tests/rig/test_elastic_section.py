"""The section `mechanism.elastic` of a rig: what it becomes, and what is said of one that is wrong."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csc_matrix, save_npz

from cosim.errors import InputErrors
from cosim.multibody.model import Model
from cosim.rig.sections.rig_spec import read_rig

ARM = """\
mechanism:
  bodies:
    - {name: arm, joint: shoulder}
    - {name: load, type: fixed, parent: arm, origin: {xyz: [1, 0, 0]}, mass: 1 kg}
"""
SECTION = "length: 1, section: {shape: circle, diameter: 1 cm}"
MATERIAL = "density: 2700, youngs_modulus: 70 GPa"
BEAM = f"{SECTION}, {MATERIAL}, modes: {{bend_y: 1}}"
LINE = "length: 1, modes: {bend_y: 1}, stiffness: {mass: 1, EI: [1, 1]}"


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
    replaced = "link 'arm': its mass of 2 kg is replaced by that of its beam, 0.2121 kg"
    assert note == f"rig.yaml:6 mechanism.elastic[0]: {replaced}"


def test_the_frame_of_a_beam_in_its_link():
    """A beam along z of its link: the load at its tip hangs 1 m from the axis."""
    along_z = ARM.replace("xyz: [1, 0, 0]", "xyz: [0, 0, 1]")
    found = read(f"link: arm, origin: {{rpy: [0, -90 deg, 0]}}, beam: {{{BEAM}}}", bodies=along_z)
    model = Model(found, gravity=(0, 0, 0))
    q = np.array([0.0, 0.01])
    assert model.frame_pose(q, "load")[:3, 3] == pytest.approx([0, 0.01, 1], abs=1e-4)


MISTAKES = {
    "link: arm":
        "mechanism.elastic[0]: the modes are missing; give one of beam, table, finite_elements, shapes",
    f"link: arm, beam: {{{BEAM}}}, table: {{file: rod.npz}}":
        "mechanism.elastic[0]: beam and table are given; keep one of them",
    "link: arm, table: {file: rod.npz}":
        "mechanism.elastic[0].table: rod.npz: cannot be read: No such file or directory; check the path",
    "link: arm, shapes: {type: rod.py}": "mechanism.elastic[0].shapes.type: no such file 'rod.py' beside the rig",
    f"link: rm, beam: {{{BEAM}}}": "mechanism.elastic[0].link: link 'rm' does not exist; did you mean 'arm'?",
    f"link: base, beam: {{{BEAM}}}": "mechanism.elastic[0].link: link 'base' is the ground; name another one",
}  # fmt: skip
MISTAKES_OF_BEAMS = {
    f"{SECTION}, {MATERIAL}": ": missing key 'modes'",
    f"{SECTION}, {MATERIAL}, modes: {{}}":
        ".modes: no modes are given: the link is rigid; give a number of bend_y, bend_z, twist or stretch",
    f"{SECTION}, {MATERIAL}, modes: {{bend_y: 21}}": ".modes.bend_y: must be at most 20, is 21",
    BEAM.replace("diameter: 1 cm", ""): ".section: 'diameter' is missing; a circle has diameter",
    BEAM.replace("diameter: 1 cm", "diameter: 1 cm, width: 2"): ".section: a circle has no width; leave it out",
    BEAM.replace("circle, diameter: 1 cm", "tube, diameter: 1 cm, wall: 6 mm"):
        ".section: the wall of 0.006 m leaves no hollow; make it thinner or choose a solid shape",
    BEAM.replace("circle", "ring"): ".section.shape: expected one of rectangle, circle, tube, box; got 'ring'",
    BEAM.replace("length: 1", "length: -1"): ".length: must be above 0 m, is -1 m",
    BEAM.replace("length: 1", "length: 1 kg"): ".length: unit 'kg' does not fit here; use m, cm, mm, um",
    BEAM.replace(", youngs_modulus: 70 GPa", ""):
        ": 'youngs_modulus' missing; a beam has section, density and youngs_modulus, or 'stiffness'",
    f"{LINE}, poisson_ratio: 0.33": ": poisson_ratio is of the material of 'section'; with 'stiffness' take it out",
    LINE.replace("mass: 1", "mass: 1, kGA: [10, 10]"):
        ": stiffness.kGA is for 'theory: timoshenko'; take that, or take kGA out",
    f"{LINE}, density: 2700": ": 'stiffness' and 'density' are given; keep one of both ways",
    LINE.replace("EI: [1, 1]", "EI: [1, -1]"): ".stiffness.EI[1]: must be above 0 N*m^2, is -1 N*m^2",
    LINE.replace("EI: [1, 1]", "EI: [1, 1], inertia: [5, 1, 1]"):
        ".stiffness: inertia is impossible: 5 kg*m exceeds the sum of the others; of a thin section that about x is the"
        " sum of those about y and z",
    LINE.replace("bend_y", "twist"): ": modes of twist need stiffness.inertia about x",
    f"{BEAM}, ends: [free, clamped]":
        ": ends [free, clamped] leave the beam without a frame; they may be [clamped, free], [clamped, pinned],"
        " [clamped, clamped], [pinned, pinned], [free, free]",
    f"{BEAM}, ends: [welded, free]": ".ends[0]: expected one of clamped, pinned, free; got 'welded'",
    f"{BEAM}, rigid_elements: 3, ends: [pinned, pinned]":
        ": rigid_elements are for a beam that is clamped at its root and free at its tip",
    f"{BEAM}, damping_ratio: 2": ".damping_ratio: must be at most 1, is 2",
    f"{BEAM}, tip_section: {{shape: rectangle, width: 1, height: 1}}": ": tip_section must have the shape of section",
    f"{LINE}, tip_section: {{shape: circle, diameter: 1 cm}}":
        ": tip_section needs 'section'; with 'stiffness' the beam is the same along its length",
}  # fmt: skip


def said(*entries):
    with pytest.raises(InputErrors) as caught:
        read(*entries)
    (line,) = str(caught.value).splitlines()
    return line


@pytest.mark.parametrize(("entry", "message"), MISTAKES.items())
def test_mistakes(entry, message):
    assert said(entry) == f"rig.yaml:6 {message}"


@pytest.mark.parametrize(("keys", "message"), MISTAKES_OF_BEAMS.items())
def test_mistakes_of_beams(keys, message):
    assert said(f"link: arm, beam: {{{keys}}}") == f"rig.yaml:6 mechanism.elastic[0].beam{message}"


def test_a_link_is_elastic_once():
    entry = f"link: arm, beam: {{{BEAM}}}"
    assert said(entry, entry) == "rig.yaml:7 mechanism.elastic[1].link: link 'arm' is elastic already; keep one of both"


def test_names_of_parts_of_an_elastic_link_are_taken():
    """Such a link would be a parent of itself."""
    bodies = f"{ARM}    - {{name: arm@1, parent: load, mass: 1, inertia: [1, 1, 1]}}\n"
    with pytest.raises(InputErrors) as caught:
        beam(BEAM, bodies=bodies)
    what = "link 'arm@1': 'arm@' begins names of parts of the elastic link; rename it"
    assert str(caught.value) == f"rig.yaml:5 mechanism.bodies[2]: {what}"


def test_what_depends_on_a_wrong_beam_is_no_error_of_its_own():
    motion = "trajectory: {type: quintic, duration: 1, goal: {shoulder: 1}}"
    control = f"controllers: [{{type: computed_torque, bandwidth: 5, {motion}}}]\n"
    Path("rig.yaml").write_text(f"{ARM}  elastic: [{{link: arm, beam: {{{BEAM}, tip_mass: -1}}}}]\n{control}")
    with pytest.raises(InputErrors) as caught:
        read_rig("rig.yaml")
    assert str(caught.value) == "rig.yaml:5 mechanism.elastic[0].beam.tip_mass: must be at least 0 kg, is -1 kg"


def test_what_is_attached_beyond_a_beam():
    short = BEAM.replace("length: 1", "length: 0.9")
    beyond = "x = 1 m is beyond the beam, which ends at 0.9 m; move it or lengthen the beam"
    assert said(f"link: arm, beam: {{{short}}}") == f"rig.yaml:4 mechanism.bodies[1]: elastic link 'arm': {beyond}"
    hardly = BEAM.replace("length: 1", "length: 0.9999999")
    assert "x = 1 m is beyond the beam, which ends at 0.9999999 m" in said(f"link: arm, beam: {{{hardly}}}")


def test_a_gear_of_a_mode_is_none():
    gear = "    - {name: g, type: gear, joints: [shoulder, arm.bend_y_1], ratio: 2}\n"
    Path("rig.yaml").write_text(f"{ARM}  elastic: [{{link: arm, beam: {{{BEAM}}}}}]\n  constraints:\n{gear}")
    with pytest.raises(InputErrors) as caught:
        read_rig("rig.yaml")
    what = "names joint 'arm.bend_y_1', which is a mode of an elastic link; name a joint"
    assert str(caught.value) == f"rig.yaml:7 mechanism.constraints[0]: {what}"


def test_modes_from_a_table():
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
    at = "rig.yaml:6 mechanism.elastic[0].table: rod.npz: "
    assert said("link: arm, table: {file: rod.npz, mass: 2 kg}").startswith(at)
    Path("rod.npz").write_text("no archive")
    assert said("link: arm, table: {file: rod.npz}").startswith(at)


def test_a_mode_that_is_the_motion_of_the_joint():
    positions = np.array([[0.0, 0, 0], [0.5, 0, 0], [1.0, 0, 0]])
    turn = [[[0.0, x, 0.0]] for x in positions[:, 0]]
    np.savez("rod.npz", positions=positions, masses=[0.25, 0.5, 0.25], displacements=turn, frequencies=[5.0])
    turning = ARM.replace("joint: shoulder", "joint: shoulder, axis: [0, 0, 1]")
    with pytest.raises(InputErrors) as caught:
        Model(read("link: arm, table: {file: rod.npz}", bodies=turning))
    (error,) = caught.value.errors
    what = "link 'arm' can move but has no inertia against the motion; give it or its descendants mass, or make joint"
    assert str(error) == (
        f"rig.yaml:3 mechanism.bodies[0]: {what} 'shoulder' fixed; or take out a mode that moves it as this joint does"
    )


def test_modes_from_matrices():
    """Two nodes of 3 dofs and a spring between them."""
    masses, stiffness = np.diag([1.0, 1, 1, 2, 2, 2]), 100.0 * np.kron([[1.0, -1], [-1, 1]], np.eye(3))
    for name, matrix in {"M": masses, "K": stiffness}.items():
        save_npz(f"{name}.npz", csc_matrix(matrix))
    Path("nodes.csv").write_text("node,x,y,z\n1,0,0,0\n2,1,0,0\n")
    files = "mass: M.npz, stiffness: K.npz, nodes: nodes.csv"
    entry = f"link: arm, finite_elements: {{{files}, root: [1], interfaces: {{tip: 2}}, modes: 3}}"
    at = "rig.yaml:6 mechanism.elastic[0].finite_elements"
    assert said(entry) == f"{at}.interfaces.tip: expected a list of numbers of nodes"
    assert said(f"link: arm, finite_elements: {{{files.replace('K.npz', 'L.npz')}, root: [1]}}") == (
        f"{at}: L.npz: cannot be read: No such file or directory; check the path"
    )
    for stiffening, message in (
        ("{spin: {w: M.npz}}", ".stiffening.spin: unknown key 'w'; known: x, y, z"),
        ("{force: {tip: {x: 3}}}", ".stiffening.force.tip.x: expected text, got 3; put it in quotes"),
        ("{spin: {x: G.npz}}", ": G.npz: cannot be read: No such file or directory; check the path"),
        (
            "{force: {top: {x: M.npz}}}",
            ": stiffening.force: there is no interface 'top'; name it in interfaces",
        ),
    ):
        assert said(f"link: arm, finite_elements: {{{files}, root: [1], stiffening: {stiffening}}}") == f"{at}{message}"
    assert said(f"link: arm, finite_elements: {{{files}, root: [7]}}") == (
        f"{at}: nodes.csv: root: node 7 does not exist; nodes are in the column node"
    )
