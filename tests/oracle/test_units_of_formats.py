"""Angles in degrees, gravity in mm/s² and numbers that are none are found alike, whatever the format."""

import re
import warnings

import pytest

from cosim.core.errors import InputError, RunWarning
from cosim.mechanics.multibody.model import Model
from cosim.rig.rig import load_rig

URDF = """<robot name="r">
 <link name="w"/>
 <link name="a">
  <inertial><origin xyz="0 0 0.2" rpy="{inner}"/><mass value="{mass}"/>
   <inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
 </link>
 <joint name="j" type="revolute"><parent link="w"/><child link="a"/>
  <origin xyz="0 0 0.1" rpy="{outer}"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="9" velocity="2"/>
 </joint>
</robot>"""
SDF = """<sdf version="1.9"><world name="s">
 <gravity>0 0 {gravity}</gravity>
 <model name="r">
  <link name="a">
   <pose>0 0 0.1 {outer}</pose>
   <inertial><pose>0 0 0.2 {inner}</pose><mass>{mass}</mass>
    <inertia><ixx>0.02</ixx><iyy>0.02</iyy><izz>0.01</izz></inertia></inertial>
  </link>
  <joint name="j" type="revolute"><parent>world</parent><child>a</child><axis><xyz>0 1 0</xyz></axis></joint>
 </model>
</world></sdf>"""
MJCF = """<mujoco><compiler angle="radian"/>
 <option gravity="0 0 {gravity}"/>
 <worldbody>
  <body name="a" pos="0 0 0.1" euler="{outer}">
   <joint name="j" axis="0 1 0"/>
   <inertial pos="0 0 0.2" euler="{inner}" mass="{mass}" diaginertia="0.02 0.02 0.01"/>
  </body>
 </worldbody>
</mujoco>"""
INLINE = """mechanism:
  gravity: [0, 0, {gravity}]
  bodies:
    - name: a
      joint: j
      origin: {{xyz: [0, 0, 0.1], rpy: [{outer}]}}
      mass: {mass}
      com: [0, 0, 0.2]
      inertia: [0.02, 0.02, 0.01]
"""
FORMATS = {"urdf": URDF, "sdf": SDF, "mjcf": MJCF, "inline": INLINE}
SOUND = {"inner": "0 0 0", "outer": "0 0 0", "mass": "1", "gravity": "-9.81"}


def warned(folder, format, **numbers):
    """What `load_rig` warns of in the robot with these numbers."""
    if format == "mjcf":
        pytest.importorskip("mujoco")
    given = SOUND | numbers
    if format == "inline":
        given["outer"] = given["outer"].replace(" ", ", ")
    text = FORMATS[format].format(**given)
    rig = folder / "rig.yaml"
    rig.write_text(text if format == "inline" else f"mechanism: {{{format}: robot.{format}}}\n")
    (folder / f"robot.{format}").write_text(text)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        load_rig(rig)
    return [str(each.message).replace(f"{folder}/", "") for each in found]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("angles", ["0 0 0", "1.5708 0 -3.14159", "0 6.2832 -6.2832"])
def test_angles_within_a_turn_raise_no_doubt(tmp_path, format, angles):
    assert warned(tmp_path, format, inner=angles, outer=angles) == []


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("angles", ["90 0 0", "0 180 -45", "-30 0 0"])
def test_angles_in_degrees_are_one_line_with_their_radians(tmp_path, format, angles):
    (one,) = warned(tmp_path, format, outer=angles)
    lines = FORMATS[format].splitlines()
    line = next(k for k, text in enumerate(lines, 1) if "{outer}" in text)
    assert re.match(rf"\S+:{line} ", one) and "they look like degrees, in rad they are " in one
    radians = [float(word) for word in one.rpartition("they are ")[2].split()]
    assert radians == pytest.approx([float(word) * 0.0174532925 for word in angles.split()], rel=1e-3)
    if format != "inline":
        (both,) = warned(tmp_path, format, inner=angles, outer=angles)
        assert both.endswith(" (and 1 more frame)")


@pytest.mark.parametrize("format", ["sdf", "mjcf", "inline"])
@pytest.mark.parametrize(("gravity", "unit"), [("-9810", "mm/s²"), ("-981", "cm/s²")])
def test_gravity_in_another_unit(tmp_path, format, gravity, unit):
    (line,) = warned(tmp_path, format, gravity=gravity)
    assert re.match(r"\S+:2 ", line) and line.endswith(f"it looks like {unit}")


def test_gravity_that_the_rig_gives_counts(tmp_path):
    assert warned(tmp_path, "sdf", gravity="-9810")
    rig = tmp_path / "rig.yaml"
    rig.write_text("mechanism: {sdf: robot.sdf, gravity: [0, 0, -9.81]}\n")
    load_rig(rig)  # a warning would be an error


def test_a_mass_that_the_rig_corrects_is_warned_of_no_longer(tmp_path):
    """Of the numbers of a file those count that the rig has in the end."""
    two = URDF.replace("</robot>", "").format(**SOUND | {"mass": "2300"})
    two += '<link name="b"><inertial><origin xyz="0 0 0.2"/><mass value="2"/><inertia ixx="0.02" iyy="0.02" izz="0.01"'
    two += ' ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="k" type="fixed"><parent link="a"/>'
    two += '<child link="b"/><origin xyz="0 0 0.4"/></joint></robot>'
    (tmp_path / "robot.urdf").write_text(two)
    rig = tmp_path / "rig.yaml"
    rig.write_text("mechanism: {urdf: robot.urdf}\n")
    with pytest.warns(UserWarning, match="it looks like g"):
        load_rig(rig)
    rig.write_text("mechanism: {urdf: robot.urdf, numbers: {a: {mass: 2.3 kg}}}\n")
    load_rig(rig)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mass", ["", "nan", "inf", "1,5", "-1", "1e-320"])
def test_a_mass_that_is_none_is_an_error_with_its_line(tmp_path, format, mass):
    with pytest.raises(InputError, match=r"(robot|rig)\.\w+:\d+"):
        warned(tmp_path, format, mass=mass)


def test_models_of_files_are_warned_of_alike(tmp_path):
    file = tmp_path / "robot.sdf"
    file.write_text(SDF.format(**SOUND | {"outer": "90 0 0", "gravity": "-9810"}))
    with pytest.warns(RunWarning) as found:
        Model.from_sdf(file)
    assert [line for line in map(str, (each.message for each in found)) if "looks like mm/s²" in line]
    assert [line for line in map(str, (each.message for each in found)) if "look like degrees" in line]
    assert len(found) == 2
