"""Rigs that would take minutes to compile are refused before anything is compiled."""

import pytest

from cosim import load_rig
from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.sections.tick_size import MOST_INSTRUCTIONS, TickSize
from tests.kit.emitted_code import modules_compiled
from tests.kit.refusals import refusal

CHAIN = """\
mechanism:
  bodies:
    - {{name: rod, joint: hinge, repeat: {bodies}, type: {joint}, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}}
{more}schedule: {{integrator: {integrator}, substeps: {substeps}}}
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(bodies=1, substeps="1", integrator="rk4", more="", joint="revolute", soles=0):
        """soles: boxes on the last bodies, with eight points each."""
        if soles:
            box = "box: [0.1, 0.1, 0.1], with: ground, friction: 0.5, stiffness: 1e6"
            entries = (f"    - {{name: sole_{k}, link: rod_{bodies - k}, {box}}}\n" for k in range(soles))
            more += f"  contacts:\n{''.join(entries)}"
        text = CHAIN.format(bodies=bodies, substeps=substeps, integrator=integrator, more=more, joint=joint)
        (tmp_path / "rig.yaml").write_text(text)
        return read_rig("rig.yaml")

    return read


@pytest.mark.parametrize(
    "values",
    [
        {"substeps": "1e9"},
        {"bodies": 100, "substeps": "1000"},
        {"bodies": 10_000, "substeps": "4"},
        {"bodies": 3000, "joint": "spherical", "more": "    - {name: tip, mass: 1, inertia: [1, 1, 1]}\n"},
        {"bodies": 2000, "more": "    - {name: tip, mimic: {joint: hinge_1}, mass: 1, inertia: [1, 1, 1]}\n"},
        {"bodies": 300, "more": "joints: {all: {stops: {lower: -1, upper: 1}}}\n"},
        {"bodies": 10_000, "substeps": "1e9", "integrator": "rosenbrock"},
        {"bodies": 200, "integrator": "rosenbrock"},
        {"bodies": 100, "integrator": "moreau", "soles": 8},
        {"bodies": 10_001},
        {"bodies": 6000, "more": "    - {name: tip, repeat: 6000, mass: 1, inertia: [1, 1, 1]}\n"},
    ],
    ids=str,
)
def test_rigs_that_are_too_large(read, said, values):
    said(refusal(read, **values))


def test_the_largest_number_of_substeps(read):
    assert TickSize(1).instructions(3702, "rk4") <= MOST_INSTRUCTIONS < TickSize(1).instructions(3703, "rk4")
    assert read(substeps="3702").schedule.substeps == 3702
    assert "lower substeps to 3,702" in refusal(read, substeps="3703")


@pytest.mark.parametrize("joint", ["revolute", "prismatic", "spherical"])
def test_ten_thousand_bodies_in_loops_are_accepted(read, joint):
    bodies = 10_000 if joint != "spherical" else 3333
    assert len(read(bodies=bodies, joint=joint).mechanism.description.joints) == bodies


def test_an_implicit_step_counts_the_trees_on_the_ground_one_by_one(read):
    axes = "".join(
        f"    - {{name: axis_{k}, parent: base, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}}\n" for k in range(60)
    )
    assert "a tick of 61 dofs" in refusal(read, bodies=61, integrator="rosenbrock")
    assert len(read(bodies=1, integrator="rosenbrock", more=axes).joints) == 61


def test_steps_with_contacts_are_sweeps(read):
    assert len(read(bodies=100, integrator="moreau", soles=2).mechanism.description.contacts) == 2


MIXED = """\
mechanism:
  bodies:
    - {{name: rod, joint: hinge, repeat: {half}, origin: {{xyz: [0.1, 0, 0]}}, axis: [0, 1, 0], mass: 1,
       com: [0.05, 0, 0], inertia: [1e-3, 1e-3, 1e-3], damping: 0.1, stiffness: 2}}
    - {{name: slide, joint: rail, type: prismatic, repeat: {half}, mass: 1, inertia: [1e-3, 1e-3, 1e-3]}}
joints:
  all: {{limits: {{velocity: 90}}, encoder: {{cpr: 4096}}{drive}}}
"""
MOTOR = "type: dc_motor, resistance: 1, inductance: 1e-3, torque_constant: 0.1, rotor_inertia: 1e-5"
DRIVE = {
    "": "",
    "motors": f", actuator: {{{MOTOR}}}",
    "prescribed": ", prescribed: {type: sine, amplitude: 0.1, frequency: 1}",
}


@pytest.mark.parametrize("drive", DRIVE)
def test_the_code_of_many_joints_does_not_grow_with_their_number(tmp_path, drive):
    lines = []
    for bodies in (500, 600):
        path = tmp_path / f"{bodies}.yaml"
        path.write_text(MIXED.format(half=bodies // 2, drive=DRIVE[drive]))
        with modules_compiled() as modules:
            load_rig(path).engine()
        lines.append(sum(ir.count("\n") for ir in modules))
    # of prescribed joints some values are stored one by one
    assert lines[1] - lines[0] <= (8 * 100 if drive == "prescribed" else 20)
