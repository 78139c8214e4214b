"""The section `mechanism.rotors`: what it becomes, what is said of wrong ones, rotors of a robot file."""

from pathlib import Path

import pytest

from cosim import load_rig
from cosim.core.errors import InputErrors
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.refusals import refusal

BODIES = """\
mechanism:
  bodies:
    - {name: rod, mass: 1 kg, inertia: [1, 1, 1]}
    - {name: cart, type: prismatic, mass: 1 kg, inertia: [1, 1, 1], parent: base}
    - {name: ball, type: spherical, mass: 1 kg, inertia: [1, 1, 1], parent: base}
    - {name: tip, type: fixed, parent: rod}
"""
MJCF = """<mujoco><worldbody>
  <body name="a"><joint name="h" axis="0 1 0"/><inertial pos="0 0 .1" mass="1" diaginertia=".1 .1 .1"/>
    <body name="b" pos="0 0 .2"><joint name="k" axis="0 1 0"/><inertial pos="0 0 .1" mass="1" diaginertia=".1 .1 .1"/>
    </body></body></worldbody>
  <tendon><fixed name="cord" armature="0.3" damping="2"><joint joint="h" coef="1"/><joint joint="k" coef="-2"/></fixed>
  </tendon></mujoco>"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(rotors, mechanism=BODIES):
    Path("rig.yaml").write_text(f"{mechanism}  rotors:\n    {rotors}\n")
    return read_rig("rig.yaml").mechanism.description.rotors


def test_a_rotor():
    keys = "inertia: 20 kg*cm^2, damping: 0.1, friction: 30 N*cm"
    (found,) = read(f"motor: {{turns: {{rod: 1, cart: 40 rad/m}}, {keys}}}")
    assert (found.name, found.turns) == ("motor", (("rod", 1.0), ("cart", 40.0)))
    assert (found.inertia, found.damping, found.friction) == (pytest.approx(2e-3), 0.1, pytest.approx(0.3))
    assert str(found.place) == "rig.yaml:8 mechanism.rotors.motor"


def test_a_rotor_on_the_joint_of_a_loop():
    loop = BODIES + "  loops: [{name: C, parent: rod, child: cart, coordinates: true}]\n"
    (found,) = read("motor: {turns: {rod: 1, C: 2}, inertia: 1}", loop)
    assert found.turns == (("rod", 1.0), ("C", 2.0))


@pytest.mark.parametrize(
    "rotor",
    [
        "motor: {turns: {rot: 1}, inertia: 1}",
        "motor: {turns: {ball: 1}, inertia: 1}",
        "motor: {turns: {tip: 1}, inertia: 1}",
        "motor: {turns: {rod: 0}, inertia: 1}",
        "motor: {turns: {rod: 2 rad/m}, inertia: 1}",
        "motor: {turns: {}, inertia: 1}",
        "motor: {turns: {rod: 1}}",
        "motor: {inertia: 1}",
        "motor: {}",
        "motor: 3",
        "motor: {turns: {rod: 1}, inertia: -1}",
        "motor: {turns: {rod: 1}, inertia: 1, mass: 2}",
        "rod: {turns: {cart: 1}, inertia: 1}",
        "base: {turns: {cart: 1}, inertia: 1}",
        "a.b: {turns: {cart: 1}, inertia: 1}",
    ],
)
def test_a_mistake_is_refused_at_its_place(rotor, said):
    said(refusal(read, rotor))


def test_the_inertia_of_a_tendon_of_a_file_is_a_rotor():
    Path("robot.xml").write_text(MJCF)
    text = "mechanism: {mjcf: robot.xml%s}\njoints: {h: {}, k: {}}\nschedule: {step: 1 ms}\n"
    Path("rig.yaml").write_text(text % "")
    (found,) = load_rig("rig.yaml").plant.mechanism.rotors
    assert (found.turns, found.inertia, found.damping) == ((("h", 1.0), ("k", -2.0)), 0.3, 0.0)
    assert load_rig("rig.yaml").numbers[f"mechanism.{found.name}.inertia"] == 0.3
    (changed,) = load_rig("rig.yaml", [f"mechanism.rotors.{found.name}.inertia=0.5"]).plant.mechanism.rotors
    assert (changed.turns, changed.inertia) == (found.turns, 0.5)
    with pytest.raises(InputErrors, match="missing key 'turns'"):
        load_rig("rig.yaml", ["mechanism.rotors.other.inertia=0.5"])
