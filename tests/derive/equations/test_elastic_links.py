"""Derived equations of rigs with elastic links: symbols, and what is mounted on them or is mounted."""

import re
from pathlib import Path

import casadi
import numpy as np
import pytest

from cosim.derive.equations.command import read_model
from cosim.derive.equations.components import derived
from cosim.derive.equations.composition import compose, composed
from cosim.derive.equations.parameters import with_symbols
from tests.derive.equations.derivations import assert_equal, states
from tests.derive.equations.test_composition import IN_ONE, TRUCK
from tests.kit.levels import full

BOOM = """\
name: boom
mechanism:
  bodies:
    - {name: rod, joint: hub, axis: [0, 0, 1]}
    - {name: load, type: fixed, parent: rod, origin: {xyz: [1, 0, 0]}, mass: 0.2 kg, inertia: [1e-4, 2e-4, 2e-4]}
    - {name: hand, joint: wrist, axis: [0, 1, 0], parent: load, mass: 0.3 kg, com: [0.1, 0, 0], inertia: [0.01, 0.01, 0.01]}
  elastic:
    - {link: rod, beam: {length: 1, modes: {bend_y: 1, bend_z: 1}, stiffness: {mass: 1, EI: [20, 30]}}}
  frames: [{name: tool, link: load}]
"""  # noqa: E501
CHAIN = BOOM.replace("EI: [20, 30]}", "EI: [20, 30]}, rigid_elements: 2")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"boom": BOOM, "chain": CHAIN, "truck": TRUCK}.items():
        (tmp_path / f"{name}.yaml").write_text(text)


def found(d, state):
    return {
        c.name: np.asarray(
            casadi.Function("f", [d.inputs[a] for a in c.arguments], [c.entries])(*(state[a] for a in c.arguments))
        ).ravel()
        for c in d.everything
    }


@pytest.mark.parametrize("text", [BOOM, CHAIN], ids=["modes", "rigid elements"])
def test_symbols_have_the_values_of_the_rig_and_of_another(text, tmp_path):
    """The mass of the hand is a symbol; the numbers of modes are none."""
    (tmp_path / "rig.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text(text.replace("mass: 0.3 kg", "mass: 0.7 kg"))
    model, other = (read_model(tmp_path / f"{name}.yaml") for name in ("rig", "other"))
    equations, parameters = with_symbols(model.equations)
    assert not any("modes" in p.name for p in parameters)
    d = derived(model, equations, parameters=parameters)
    mass = next(k for k, p in enumerate(d.parameters) if p.name == "m_hand")
    changed = derived(other, None)
    for state in states(d):
        assert_equal(d, found(d, state), state, 1e-10)
        state["p"][mass] = 0.7
        assert_equal(changed, found(d, state), state, 1e-10)


@full
@pytest.mark.parametrize(("platform", "arm", "frame"), [("truck", "chain", "bracket"), ("chain", "truck", "tool")])
def test_rigid_elements_are_composed(platform, arm, frame):
    d = composed(compose(read_model(Path(f"{platform}.yaml")), read_model(Path(f"{arm}.yaml")), frame))
    for state in states(d):
        assert_equal(d, found(d, state), state, 1e-11)


@pytest.mark.parametrize(
    ("platform", "arm", "frame", "part"),
    [("truck", "boom", "bracket", "manipulator"), ("boom", "truck", "tool", "platform")],
)
def test_modes_are_not_composed(platform, arm, frame, part, command):
    code, out, err = command("derive", f"{platform}.yaml", "--equations", "--mount", f"{arm}.yaml", "--on", frame)
    assert (code, out) == (2, "")
    assert err == [f"--mount: the {part} has elastic links, which are not composed. {IN_ONE}"]


def test_names_of_rigid_elements_are_words_of_c(tmp_path, command):
    code, _, _ = command("derive", "chain.yaml", "--equations", "--symbols", "--to", "c", "out.c")
    written = re.sub(r"/\*.*?\*/", "", (tmp_path / "out.c").read_text(), flags=re.DOTALL)
    assert code == 0 and "@" not in written
