"""Force laws in Python as a component of the equations."""

from pathlib import Path

import pytest

from cosim.apps.derive.equations.components import derived
from cosim.apps.derive.equations.files import file_lines
from cosim.apps.derive.plant_model import read_model
from tests.derive.equations.derivations import assert_equal, states
from tests.derive.equations.reading import evaluated, read_text
from tests.kit.given import beside

GIVEN = beside(__file__)

LAW = GIVEN["law"]
RIG = """\
name: ball
mechanism:
  bodies:
    - {name: arm, axis: [0, 1, 0], mass: 1 kg, com: [0.2, 0, 0], inertia: [0.01, 0.02, 0.02]}
    - {name: slide, type: prismatic, axis: [1, 0, 0], mass: 0.5 kg}
  forces: [{name: floor, type: law.py, between: [slide], points: [[0.1, 0, 0]], params: {stiffness: 50}}]
"""


def written(law):
    Path("law.py").write_text(law)
    Path("rig.yaml").write_text(RIG)
    return Path("rig.yaml")


def test_a_law_as_a_component(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    d = derived(read_model(written(LAW.replace("FLOOR", "floor"))))
    values, code = evaluated(d, read_text(d)), {}
    exec("\n".join(file_lines(d, "python", None)), code)
    signs = set()
    for state in states(d, 6):
        assert_equal(d, values(state), state, 1e-12, but=("inverse_dynamics", "forward_dynamics"))
        given = {key: value.tolist() for key, value in state.items()}
        assert_equal(d, {c.name: code[c.name](*(given[a] for a in c.arguments)) for c in d.everything}, state, 1e-12)
        signs.add(bool(d.model.frame_pose(state["q"], "slide")[2, 3] < 0))
    assert signs == {False, True}  # the floor and above it


@pytest.mark.parametrize("to", ["text", "c"])
def test_a_law_that_cannot_be_traced(command, to):
    rig = written(LAW.replace("FLOOR", "(floor if height < 0.0 else 0.0)"))
    (said,) = command.refuses("derive", rig, "--equations", "--to", to)
    assert said.startswith("rig.yaml:")
    assert "use cosim.plugin.ops.where" in said
