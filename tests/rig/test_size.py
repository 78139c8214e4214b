"""Rigs that would take minutes to compile are refused before anything is compiled."""

import pytest

from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.sections.schedule import MOST_INSTRUCTIONS, instructions
from tests.kit.refusals import refusal

CHAIN = """\
mechanism:
  bodies:
    - {{name: rod, joint: hinge, repeat: {bodies}, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}}
{more}schedule: {{integrator: {integrator}, substeps: {substeps}}}
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(bodies=1, substeps="1", integrator="rk4", more=""):
        text = CHAIN.format(bodies=bodies, substeps=substeps, integrator=integrator, more=more)
        (tmp_path / "rig.yaml").write_text(text)
        return read_rig("rig.yaml")

    return read


@pytest.mark.parametrize(
    "values",
    [
        {"substeps": "1e9"},
        {"bodies": 100, "substeps": "200"},
        {"bodies": 10_000},
        {"bodies": 10_000, "substeps": "1e9", "integrator": "rosenbrock"},
        {"bodies": 200, "integrator": "rosenbrock"},
        {"bodies": 10_001},
        {"bodies": 6000, "more": "    - {name: tip, repeat: 6000, mass: 1, inertia: [1, 1, 1]}\n"},
    ],
    ids=str,
)
def test_rigs_that_are_too_large(read, said, values):
    said(refusal(read, **values))


def test_the_largest_number_of_substeps(read):
    assert instructions(1, 3702, "rk4") <= MOST_INSTRUCTIONS < instructions(1, 3703, "rk4")
    assert read(substeps="3702").schedule.substeps == 3702
    assert "lower substeps to 3,702" in refusal(read, substeps="3703")
