"""What couples the bodies and joints of an MJCF file accelerates as in MuJoCo, whose equality constraints are solved as
rigid ones: equality constraints, tendons, springs and dampers with polynomials, carried bodies, flags."""

import dataclasses

import numpy as np
import pytest

from cosim.mechanics.multibody import Model
from tests.oracle.mujoco_pair import AHEAD, Pair, compare

INERTIAL = '<inertial pos="0.1 0.02 -0.2" mass="1.5" diaginertia="0.03 0.02 0.04" euler="20 -30 40"/>'
LIGHT = '<inertial pos="0 0.1 0.05" mass="0.4" fullinertia="0.003 0.002 0.004 0.0002 -0.0003 0.0001"/>'
TREE = f"""
  <site name="wall" pos="0.5 0.4 1.2"/>
  <body name="a" pos="0.1 0.2 0.3" euler="10 20 30" {{a}}>{INERTIAL}<site name="on a" pos="0.1 0.2 0.3"/>
    <joint name="h1" axis="0 1 0.3" pos="0.1 -0.2 0.05" damping="0.2" armature="0.3" ref="20" {{h1}}/>
    <body name="b" pos="0.4 0 0" euler="0 50 0" {{b}}>{LIGHT}<site name="on b" pos="0 0.1 0.3"/>
      <joint name="s1" type="slide" axis="1 0.2 0" ref="0.1" damping="0.4" stiffness="30" springref="0.2" {{s1}}/>
      <body name="c" pos="0 0.3 0"><joint name="h3" axis="1 0 0.1" damping="0.1" {{h3}}/>{LIGHT}
        <site name="on c" pos="0.1 0.1 0.2" euler="30 40 50"/></body>
    </body>
    <body name="d" pos="0 0 0.5" euler="0 0 40"><joint name="h4" axis="0 1 0"/>{LIGHT}<site name="on d" pos="0.1 0 0"/>
      <body name="e" pos="0.3 0 0.1"><joint name="ball" type="ball"/>{LIGHT}</body>
    </body>
  </body>
  <body name="f" pos="0.2 0 1"><freejoint name="float"/>{LIGHT}
    <site name="on f" pos="0.1 0.1 0.1" euler="0 50 60"/></body>"""

FIXED = '<fixed name="t" {}><joint joint="h1" coef="0.7"/><joint joint="s1" coef="-2"/></fixed>'
CORD = '<spatial name="t" {}><site site="wall"/><site site="on b"/></spatial>'
LONG = """<spatial name="t" {}><site site="wall"/><site site="on a"/><site site="on c"/><pulley divisor="2"/>
  <site site="on c"/><site site="on d"/></spatial>"""


def equality(text):
    return {"more": f"<equality>{text}</equality>"}


def tendon(path, keys):
    return {"more": f"<tendon>{path.format(keys)}</tendon>"}


# name -> attributes of bodies and joints, and what follows the bodies
CASES = {
    "connect": equality('<connect body1="c" body2="d" anchor="0.1 0.1 0.1"/>'),
    "connect to the world": equality('<connect body1="c" body2="world" anchor="0.1 0.1 0.1"/>'),
    "connect of sites": equality('<connect site1="on c" site2="on d"/>'),
    "weld": equality('<weld body1="c" body2="f" relpose="0.3 0.1 0.1 0.9 0.1 0.2 0.1" anchor="0.1 0 0.1"/>'),
    "weld of sites": equality('<weld site1="on c" site2="on f"/>'),
    "weld of what cannot turn then": equality('<weld body1="d" body2="e"/>'),
    "joint that follows": equality('<joint joint1="h3" joint2="h1" polycoef="0.1 -2 0 0 0"/>'),
    "joint of another kind": equality('<joint joint1="s1" joint2="h4" polycoef="0.05 0.2 0 0 0"/>'),
    "chain of joints": equality(
        '<joint joint1="h3" joint2="s1" polycoef="0 3 0 0 0"/><joint joint1="s1" joint2="h4"/>'
    ),
    "polynomial": equality('<joint joint1="h3" joint2="h1" polycoef="0.1 -1 0.3 0.2 -0.1"/>'),
    "joint that is held": equality('<joint joint1="h1" polycoef="0.3 0 0 0 0"/>'),
    "inactive": equality('<connect body1="c" body2="d" anchor="0.1 0.1 0.1" active="false"/>'),
    "fixed tendon": tendon(FIXED, 'stiffness="40" damping="3" springlength="0.2"'),
    "fixed tendon with slack": tendon(FIXED, 'stiffness="40" springlength="-0.3 0.4"'),
    "fixed tendon with polynomials": tendon(FIXED, 'stiffness="40 10 3" damping="1 2 3" springlength="0.1"'),
    "straight spring": tendon(CORD, 'stiffness="50" damping="4" springlength="0.3"'),
    "rope": tendon(CORD, 'stiffness="50" damping="0" springlength="0 1.1"'),
    "cord over points and a pulley": tendon(LONG, 'stiffness="30 8" damping="2" springlength="0.5"'),
    "spring at its reference": tendon(LONG, 'stiffness="30"'),
    "polynomial spring and damper": {"h1": 'stiffness="3 20 5"', "h3": ' stiffness="2 1"', "s1": ""},
    "carried bodies": {"a": 'gravcomp="0.4"', "b": 'gravcomp="1"'},
    "tilted gravity": {"before": '<option gravity="3 -2 -5"/>', "a": 'gravcomp="0.4"'},
    "no springs": {"before": '<option><flag spring="disable"/></option>', "h1": 'stiffness="9"'},
    "no dampers": {"before": '<option><flag damper="disable"/></option>'},
    "no gravity": {"before": '<option><flag gravity="disable"/></option>', "b": 'gravcomp="1"'},
    "no equalities": {
        "before": '<option><flag equality="disable"/></option>',
        **equality('<joint joint1="h3" joint2="h1"/>'),
    },
    "rotors and friction of actuators": {
        "more": '<actuator><motor joint="h3" gear="-4" armature="0.02" damping="0.05 0.03"/></actuator>'
    },
    "tendon with inertia": tendon(FIXED, 'armature="0.4"'),
    "tendon with all": tendon(FIXED, 'armature="2" stiffness="40" damping="3" springlength="0.2"'),
    "two tendons with inertia": {
        "more": f"""<tendon>{FIXED.format('armature="0.7"')}<fixed name="u" armature="0.2"><joint joint="h3" coef="1"/>
          <joint joint="h1" coef="2"/></fixed></tendon>"""
    },
    "tendon with inertia in a loop": {
        "more": f"""<tendon>{FIXED.format('armature="0.7"')}</tendon><equality><connect body1="c" body2="d"
          anchor="0.1 0.1 0.1"/></equality>"""
    },
    "tendons that keep a ratio": {
        "more": f"""<tendon>{FIXED.format("")}<fixed name="u"><joint joint="h3" coef="1"/><joint joint="h4" coef="2"/>
          </fixed></tendon><equality><tendon tendon1="t" tendon2="u" polycoef="0.1 0.5 0.2 0 0"/></equality>"""
    },
    "tendons that share a joint": {
        "more": f"""<tendon>{FIXED.format("")}<fixed name="u"><joint joint="h3" coef="1"/><joint joint="h1" coef="2"/>
          </fixed></tendon><equality><tendon tendon1="t" tendon2="u" polycoef="0.1 0.5 0 0 0"/></equality>"""
    },
    "tendon that is held": {
        "more": f'<tendon>{FIXED.format("")}</tendon><equality><tendon tendon1="t" polycoef="0.1 0 0 0 0"/></equality>'
    },
}
COUPLED = [name for name, case in CASES.items() if "<equality>" in case.get("more", "")]
SMOOTH = [name for name in CASES if name not in COUPLED]


def file_of(folder, name):
    case = {"a": "", "b": "", "h1": "", "s1": "", "h3": "", "more": "", "before": ""} | CASES[name]
    if "stiffness" in case["s1"] + case["h3"]:
        case["s1"] = ""
    path = folder / "model.xml"
    path.write_text(f"<mujoco>{case['before']}<worldbody>{TREE.format(**case)}</worldbody>{case['more']}</mujoco>")
    return path


@pytest.mark.parametrize("name", SMOOTH)
def test_accelerations(name, tmp_path):
    pair = compare(file_of(tmp_path, name), len(name))
    assert not pair.model.mechanism.warnings


@pytest.mark.parametrize("name", COUPLED)
def test_accelerations_of_coupled_bodies(name, tmp_path):
    path = file_of(tmp_path, name)
    compare(path, len(name), speed=0.0)
    pair = compare(path, len(name), tolerance=1e3 * AHEAD**2)  # by differences of directions
    assert not pair.model.mechanism.warnings
    rigid = [note for note in pair.model.mechanism.notes if "equality constraints are rigid" in note]
    assert len(rigid) == (name not in ("inactive", "no equalities"))


def test_inertia_of_a_tendon_on_branches_is_taken_whole(tmp_path):
    """MuJoCo has the diagonal of J c cᵀ alone there, whose elements beside it have no place in its mass matrix."""
    path = tmp_path / "model.xml"
    branches = '<fixed name="t" armature="0.4"><joint joint="h3" coef="1"/><joint joint="h4" coef="-2"/></fixed>'
    keys = {"a": "", "b": "", "h1": "", "s1": "", "h3": ""}
    path.write_text(f"<mujoco><worldbody>{TREE.format(**keys)}</worldbody><tendon>{branches}</tendon></mujoco>")
    pair = Pair(path)
    assert [note for note in pair.model.mechanism.notes if "MuJoCo leaves this coupling out" in note]
    plain = Model(dataclasses.replace(pair.model.mechanism, rotors=()))
    q, c = pair.model.neutral(), np.zeros(pair.model.nv)
    c[[pair.model.dof_index("h3"), pair.model.dof_index("h4")]] = 1.0, -2.0
    np.testing.assert_allclose(pair.model.mass_matrix(q) - plain.mass_matrix(q), 0.4 * np.outer(c, c), atol=1e-12)


@pytest.mark.parametrize("order", [1, -1])
def test_a_chain_of_followers_narrows_the_joint_at_its_head_in_any_order(order, tmp_path):
    """s1 = 0.2 − h4 / 2 and h3 = 2 (s1 − 0.1), with the reference 0.1 of s1."""
    chain = [
        '<joint joint1="h3" joint2="s1" polycoef="0 2 0 0 0"/>',
        '<joint joint1="s1" joint2="h4" polycoef="0.1 -0.5"/>',
    ]
    keys = {"a": "", "b": "", "h1": "", "s1": 'range="-1 0.5"', "h3": 'range="0 40"'}
    text = f"<worldbody>{TREE.format(**keys)}</worldbody><equality>{''.join(chain[::order])}</equality>"
    path = tmp_path / "model.xml"
    path.write_text(f"<mujoco>{text}</mujoco>")
    joints = {joint.name: joint for joint in Pair(path).model.mechanism.joints}
    lowest = 0.2 - (np.radians(40.0) / 2.0 + 0.1)
    assert (joints["h4"].lower, joints["h4"].upper) == pytest.approx((2.0 * lowest, 0.2))
