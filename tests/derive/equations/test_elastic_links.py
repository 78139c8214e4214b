"""Derived equations of rigs with elastic links: symbols, and what is mounted on them or is mounted."""

import re
import shutil
from pathlib import Path

import pytest

from cosim.apps.derive.equations.components import derived
from cosim.apps.derive.equations.composition import compose, composed
from cosim.apps.derive.equations.parameters import with_symbols
from cosim.apps.derive.plant_model import read_model
from tests.derive.equations.derivations import OWN, assert_equal, states, values_of


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """With the boom of modes, and one of rigid elements."""
    monkeypatch.chdir(tmp_path)
    for name in ("boom", "truck"):
        shutil.copy(OWN / f"{name}.yaml", tmp_path)
    text = (OWN / "boom.yaml").read_text().replace("EI: [20, 30]}", "EI: [20, 30]}, rigid_elements: 2")
    (tmp_path / "chain.yaml").write_text(text)


@pytest.mark.parametrize("name", ["boom", "chain"])
def test_symbols_have_the_values_of_the_rig_and_of_another(name):
    """The mass of the hand is a symbol; the numbers of modes are none."""
    text = Path(f"{name}.yaml").read_text()
    Path("other.yaml").write_text(text.replace("mass: 0.3 kg", "mass: 0.7 kg"))
    model, other = (read_model(Path(f"{each}.yaml")) for each in (name, "other"))
    equations, parameters = with_symbols(model.equations)
    assert not any("modes" in p.name for p in parameters)
    d = derived(model, equations, parameters=parameters)
    mass = next(k for k, p in enumerate(d.parameters) if p.name == "m_hand")
    changed = derived(other, None)
    for state in states(d):
        assert_equal(d, values_of(d, state), state, 1e-10)
        state["p"][mass] = 0.7
        assert_equal(changed, values_of(d, state), state, 1e-10)


@pytest.mark.parametrize(("platform", "arm", "frame"), [("truck", "chain", "bracket"), ("chain", "truck", "tool")])
def test_rigid_elements_are_composed(platform, arm, frame):
    d = composed(compose(read_model(Path(f"{platform}.yaml")), read_model(Path(f"{arm}.yaml")), frame))
    for state in states(d):
        assert_equal(d, values_of(d, state), state, 1e-11)


@pytest.mark.parametrize(("platform", "arm", "frame"), [("truck", "boom", "bracket"), ("boom", "truck", "tool")])
def test_modes_are_not_composed(platform, arm, frame, command, said):
    said(command.refuses("derive", f"{platform}.yaml", "--equations", "--mount", f"{arm}.yaml", "--on", frame))


def test_names_of_rigid_elements_are_words_of_c(tmp_path, command):
    code, _, _ = command("derive", "chain.yaml", "--equations", "--symbols", "--to", "c", "out.c")
    written = re.sub(r"/\*.*?\*/", "", (tmp_path / "out.c").read_text(), flags=re.DOTALL)
    assert code == 0 and "@" not in written
