"""Rigs that would take minutes to compile are refused before anything is compiled."""

import pytest

from cosim.errors import InputError
from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.sections.size import MOST_INSTRUCTIONS, instructions

CHAIN = """\
mechanism:
  bodies:
    - {{name: rod, joint: hinge, repeat: {bodies}, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}}
{more}schedule: {{integrator: {integrator}, substeps: {substeps}}}
"""


@pytest.fixture
def error_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def error_of(bodies=1, substeps="1", integrator="rk4", more=""):
        text = CHAIN.format(bodies=bodies, substeps=substeps, integrator=integrator, more=more)
        (tmp_path / "rig.yaml").write_text(text)
        try:
            read_rig("rig.yaml")
        except InputError as error:
            return str(error)
        return ""

    return error_of


MOST = "at most 500,000 are compiled"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"substeps": "1e9"},
            "rig.yaml:4 schedule.substeps: a tick of 1 dof has about 135,000,000,200 instructions, "
            f"{MOST}; lower substeps to 3,702 or less, or use a smaller step",
        ),
        (
            {"bodies": 100, "substeps": "200"},
            "rig.yaml:4 schedule.substeps: a tick of 100 dofs has about 1,334,000 instructions, "
            f"{MOST}; lower substeps to 73 or less, or use a smaller step",
        ),
        (
            {"bodies": 10_000},
            f"rig.yaml:1 mechanism: a tick of 10,000 dofs has about 2,650,070 instructions, {MOST}; use fewer bodies",
        ),
        (
            {"bodies": 10_000, "substeps": "1e9", "integrator": "rosenbrock"},
            "rig.yaml:1 mechanism: a tick of 10,000 dofs has about 403,835,983,333 instructions, "
            f"{MOST}; use fewer bodies",
        ),
        (
            {"bodies": 200, "integrator": "rosenbrock"},
            "rig.yaml:4 schedule.integrator: a tick of 200 dofs has about 2,919,736 instructions, "
            f"{MOST}; use another integrator or fewer bodies",
        ),
        ({"bodies": 10_001}, "rig.yaml:3 mechanism.bodies[0].repeat: must be at most 10000, is 10001"),
        (
            {"bodies": 6000, "more": "    - {name: tip, repeat: 6000, mass: 1, inertia: [1, 1, 1]}\n"},
            "rig.yaml:4 mechanism.bodies[1]: more than 10,000 bodies; use fewer",
        ),
    ],
)
def test_rigs_that_are_too_large(error_of, values, message):
    assert error_of(**values) == message


def test_the_largest_number_of_substeps(error_of):
    assert instructions(1, 3702, "rk4") <= MOST_INSTRUCTIONS < instructions(1, 3703, "rk4")
    assert error_of(substeps="3702") == ""
    assert "lower substeps to 3,702" in error_of(substeps="3703")
