"""Numbers of a mechanism as symbols: other values give the equations of the mechanism built with them."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.apps.derive.equations.components import derived
from cosim.apps.derive.equations.parameters import with_symbols
from cosim.apps.derive.plant_model import read_model
from tests.derive.equations.derivations import GCC, RIGS, assert_equal, c_code, derivation, python_code, states
from tests.derive.equations.reading import evaluated, read_latex, read_text

CODE = [pytest.param(c_code, marks=pytest.mark.skipif(not GCC, reason="no gcc: C is not compiled")), python_code]
# where loops, constraints and springs are attached: parameter -> its text in the rig, another text, its value
ATTACHED = {
    "slider_crank": {"l_wrist_pin_rod": ("child_origin: {xyz: [30 cm", "child_origin: {xyz: [31.7 cm", 0.317)},
    "four_bar": {
        "l_pin_rocker": (", origin: {xyz: [40 cm", ", origin: {xyz: [41.3 cm", 0.413),
        "l_pin_coupler": ("child_origin: {xyz: [50 cm", "child_origin: {xyz: [52.1 cm", 0.521),
    },
    "swinging_cylinder": {"l_eye_rocker": (", origin: {xyz: [40 cm", ", origin: {xyz: [43.9 cm", 0.439)},
    "andrews": {
        "l_P3_K2": ("child: K3, origin: {xyz: [-0.028", "child: K3, origin: {xyz: [-0.03", -0.03),
        "l_P6_K6": ("[0.02, 0, 0]", "[0.023, 0, 0]", 0.023),
        "l_spring_base_y": ("[0.014, 0.072", "[0.014, 0.081", 0.081),
        "l_spring_K3_x": ("[0.02, -0.018", "[0.017, -0.018", 0.017),
    },
}


@pytest.mark.parametrize("name", ATTACHED)
def test_loops_constraints_and_springs_at_other_places(name, tmp_path):
    d, text = derivation(f"mechanisms/{name}", symbols=True), (RIGS / "mechanisms" / f"{name}.yaml").read_text()
    for before, after, _ in ATTACHED[name].values():
        assert text.count(before) == 1
        text = text.replace(before, after)
    (tmp_path / "changed.yaml").write_text(text)
    changed = {parameter: value for parameter, (_, _, value) in ATTACHED[name].items()}
    p = np.array([changed.pop(parameter.name, parameter.value) for parameter in d.parameters])
    assert not changed
    rebuilt, values = replace(d, model=read_model(tmp_path / "changed.yaml")), python_code(d, tmp_path)
    for state in states(d):
        assert_equal(rebuilt, values(state | {"p": p}), state, 1e-12)


ODD = """\
<robot name="my robot-1.0">
  <link name="base.link"/>
  <link name="arm-1">{body}</link>
  <link name="arm_1">{body}</link>
  <link name="größe/*%#$&amp;\\d&quot;&quot;&quot;*/">{body}</link>
  <joint name="j-1" type="continuous"><parent link="base.link"/><child link="arm-1"/><axis xyz="0 0 1"/>
    <dynamics damping="0.5"/></joint>
  <joint name="j.1" type="continuous"><parent link="arm-1"/><child link="arm_1"/><origin xyz="0 0 1"/>
    <axis xyz="0 1 0"/><dynamics damping="0.5"/></joint>
  <joint name="3 it's°" type="continuous"><parent link="arm_1"/>
    <child link="größe/*%#$&amp;\\d&quot;&quot;&quot;*/"/>
    <origin xyz="0 0 1"/><axis xyz="0 1 0"/></joint>
</robot>
""".replace(
    "{body}",
    '<inertial><mass value="1"/><origin xyz="0.1 0 0"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>',
)


@pytest.fixture(name="odd")
def _odd(tmp_path):
    """A derivation with names that are no identifiers, two that differ in signs alone, and one that ends comments."""
    (tmp_path / "odd.urdf").write_text(ODD, encoding="utf-8")
    model = read_model(tmp_path / "odd.urdf")
    equations, parameters = with_symbols(model.equations)
    return derived(model, equations, parameters=parameters)


def test_names_that_are_no_identifiers(odd):
    assert [p.name for p in odd.parameters] == [
        *("g", "m_arm_1", "c_arm_1", "I_arm_1_zz", "l_j_1_2"),
        *("m_arm_1_2", "c_arm_1_2", "I_arm_1_2_xx", "I_arm_1_2_yy", "I_arm_1_2_zz", "l_x3_it_s"),
        *("m_gr_e_d", "c_gr_e_d", "I_gr_e_d_xx", "I_gr_e_d_yy", "I_gr_e_d_zz", "b_j_1", "b_j_1_2"),
    ]
    assert [c.letter for c in odd.kinematics] == ["T_arm_1", "T_arm_1_2", "T_gr_e_d"]


@pytest.mark.parametrize("code", CODE)
def test_names_that_are_no_identifiers_in_code(odd, code, tmp_path):
    values = code(odd, tmp_path)
    for state in states(odd):
        assert_equal(odd, values(state), state, 1e-12)


@pytest.mark.parametrize("read", [read_text, read_latex])
def test_names_that_are_no_identifiers_in_formulas(odd, read):
    values = evaluated(odd, read(odd))
    for state in states(odd):
        assert_equal(odd, values(state), state, 1e-11, but=("inverse_dynamics", "forward_dynamics"))
