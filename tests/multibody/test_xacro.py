"""xacro in robot files: expanded with arguments, includes and packages; errors have the place in the source."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cosim.core.errors import InputErrors
from cosim.mechanics.multibody.description.urdf import parse_urdf, read_urdf
from tests.kit.refusals import raised

XACRO = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
MACRO = f"""\
<robot {XACRO}>
  <xacro:macro name="arm" params="name parent child length">
    <link name="${{child}}">
      <inertial><origin xyz="${{length/2}} 0 0"/><mass value="${{4*length}}"/>
        <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    </link>
    <joint name="${{name}}" type="revolute">
      <parent link="${{parent}}"/><child link="${{child}}"/>
      <origin xyz="${{length}} 0 0"/><axis xyz="0 0 1"/>
      <limit lower="${{-pi}}" upper="${{pi}}" effort="20" velocity="${{radians(180)}}"/>
    </joint>
  </xacro:macro>
</robot>
"""
SCARA = f"""\
<robot name="scara" {XACRO}>
  <xacro:arg name="reach" default="0.5"/>
  <xacro:include filename="INCLUDED"/>
  <link name="base"><visual><geometry><mesh filename="$(find none)/base.stl"/></geometry></visual></link>
  <xacro:arm name="j1" parent="base" child="l1" length="$(arg reach)"/>
  <xacro:if value="${{$(arg reach) > 0.4}}"><xacro:arm name="j2" parent="l1" child="l2" length="0.25"/></xacro:if>
</robot>
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write files by path and text into the working directory."""
    monkeypatch.chdir(tmp_path)
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(variable, raising=False)

    def files(**texts):
        for name, text in texts.items():
            path = tmp_path / name.replace("__", "/").replace("_x", ".xacro").replace("_u", ".urdf")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return files


def messages(path, *arguments):
    return str(raised(InputErrors, read_urdf, path, *arguments)).splitlines()


@pytest.mark.parametrize("near", ["robots/s.urdf", "../elsewhere/s.urdf"])
def test_a_file_of_a_package_is_included_by_its_address(write, tmp_path, near):
    part = f'<robot {XACRO}><xacro:include filename="arm_x"/></robot>'.replace("_x", ".xacro")
    write(scara_description__macros__arm_x=MACRO, scara_description__macros__all_x=part)
    text = SCARA.replace("INCLUDED", "package://scara_description/macros/all.xacro")
    robot = tmp_path / "scara_description" / near
    robot.parent.mkdir(parents=True, exist_ok=True)
    robot.write_text(text)
    assert [joint.name for joint in read_urdf(robot, packages=[tmp_path]).mechanism.joints] == ["j1", "j2"]


def test_macros_includes_expressions_and_arguments(write):
    write(macros_x=MACRO, scara_x=SCARA.replace("INCLUDED", "macros.xacro"))
    mechanism = read_urdf("scara.xacro").mechanism
    assert [(j.name, j.parent, j.child, j.pose.position[0]) for j in mechanism.joints] == [
        ("j1", "base", "l1", 0.5),
        ("j2", "l1", "l2", 0.25),
    ]
    (first, _) = mechanism.joints
    assert (first.upper, first.max_velocity) == (np.pi, np.pi)
    assert (mechanism.name, mechanism.notes, len(mechanism.links)) == ("scara", (), 3)
    assert [j.pose.position[0] for j in read_urdf("scara.xacro", {"reach": "0.3"}).mechanism.joints] == [0.3]


def test_an_argument_without_a_default_takes_what_is_given(write):
    """xacro refuses it, with a value too."""
    text = f'<robot name="r" {XACRO}><xacro:arg name="side"/><link name="%s"/></robot>'
    write(a_x=text % "$(arg side)", b_x=text % "a")
    (link,) = read_urdf("a.xacro", {"side": "left"}).mechanism.links
    assert link.name == "left"
    assert len(read_urdf("b.xacro").mechanism.links) == 1


def test_a_urdf_with_xacro_in_it_is_expanded_whatever_it_is_called(write):
    """Half a robot without its macros ran before, because unknown elements are ignored."""
    write(macros_x=MACRO, robot_u=SCARA.replace("INCLUDED", "macros.xacro"))
    assert len(read_urdf("robot.urdf").mechanism.joints) == 2


def test_a_plain_file_is_read_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    assert parse_urdf(f'<robot name="r" {XACRO}><link name="a$"/></robot>').links[0].name == "a$"


@pytest.mark.parametrize("where", ["below", "beside", "ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "manifest"])
def test_packages_are_found(write, where, tmp_path, monkeypatch):
    folder = {"below": "ws__src__macros", "beside": "ws__macros", "manifest": "elsewhere__folder"}.get(
        where, "ros__macros"
    )
    if where == "AMENT_PREFIX_PATH":
        folder = "ros__share__macros"
    name = "<package><name>macros</name></package>"
    write(**{
        f"{folder}__arm_x": MACRO,
        f"{folder}__package.xml": name,
        "ws__robot__package.xml": "<package/>",
        "ws__robot__urdf__scara_x": SCARA.replace("INCLUDED", "$(find macros)/arm.xacro"),
    })  # fmt: skip
    packages = {"below": [tmp_path / "ws"], "manifest": [tmp_path / "elsewhere"]}.get(where, [])
    if where.endswith("PATH"):
        monkeypatch.setenv(where, str(tmp_path / "ros"))
    assert len(read_urdf("ws/robot/urdf/scara.xacro", None, packages).mechanism.joints) == 2


@pytest.mark.parametrize("found", ["given", "ROS_PACKAGE_PATH"])
def test_a_package_in_a_relative_folder_is_found_from_an_include(write, found, monkeypatch):
    """xacro joins a relative file to the folder of the file that includes it."""
    write(
        ws__arms__macros__arm_x=f'<robot {XACRO}><xacro:include filename="$(find arms)/macros/own_x"/></robot>'.replace(
            "_x", ".xacro"
        ),
        ws__arms__macros__own_x=MACRO,
        ws__robots__scara_x=SCARA.replace("INCLUDED", "$(find arms)/macros/arm.xacro"),
    )
    if found != "given":
        monkeypatch.setenv(found, "ws")
    packages = [Path("ws")] if found == "given" else []
    assert len(read_urdf("ws/robots/scara.xacro", None, packages).mechanism.joints) == 2


def test_warnings_of_xacro_are_notes(write, capfd):
    write(a_x=f'<robot name="r" {XACRO}>\n<xacro:property name="pi" value="3"/>\n<link name="a"/>\n</robot>')
    assert read_urdf("a.xacro").mechanism.notes == ("a.xacro:1: xacro: redefining global symbol: pi",)
    assert capfd.readouterr() == ("", "")


def robot(*lines):
    return "\n".join([f'<robot name="r" {XACRO}>', '<link name="a"/>', *lines, "</robot>"])


def test_an_optional_include_may_be_missing(write):
    optional = '<xacro:include filename="{}" optional="true"/>'
    write(a_x=robot(optional.format("b.xacro"), optional.format("$(find arms)/b.xacro")))
    assert len(read_urdf("a.xacro").mechanism.links) == 1


LEG = "<xacro:macro name='leg' params='{}'>", "{}", "</xacro:macro>", "<xacro:leg/>"


def leg(params, inside):
    return [line.format(text) for line, text in zip(LEG, (params, inside, "", ""), strict=True)]


def include(file):
    return f'<xacro:include filename="{file}"/>'


MISTAKES = {
    "an unknown name": ['<link name="${b}"/>'],
    "a division by zero": ['<xacro:property name="b" value="${1/0}"/>', '<link name="${b}"/>'],
    "an unknown macro": ["<xacro:leg/>"],
    "a parameter without a value": leg("side", "<link name='${side}'/>"),
    "an unknown name in a macro": leg("", "<link name='${side}'/>"),
    "a macro that calls itself": leg("", "<xacro:leg/>"),
    "an argument without a value": ['<link name="$(arg side)"/>'],
    "an argument without a default": ['<xacro:arg name="side"/>', '<link name="$(arg side)"/>'],
    "a missing file": [include("b.xacro")],
    "a missing package": [include("$(find arms)/b.xacro")],
    "an included file that is no XML": [include("broken.xacro")],
    "a mistake in an included macro": [
        include("macros.xacro"),
        '<xacro:arm name="j" parent="b" child="c" length="-1"/>',
    ],
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_has_its_line_in_the_source(write, case, said):
    write(a_x=robot(*MISTAKES[case]), broken_x="<robot>\n", macros_x=MACRO)
    line = messages("a.xacro")[0]
    assert re.match(r"\w+\.xacro:\d", line)
    said(line)


def test_macros_that_nothing_calls_and_arguments_that_nothing_takes(write, said):
    write(arm_x=MACRO, a_x=robot('<xacro:arg name="side" default="left"/>'))
    write(plain_u='<robot name="r"><link name="a"/></robot>')
    for given in (["arm.xacro"], ["a.xacro", {"sid": "1"}], ["plain.urdf", {"sid": "1"}]):
        said(messages(*given))


def test_without_the_package_the_fix_is_named(write, monkeypatch, said):
    monkeypatch.setitem(sys.modules, "xacro", None)
    monkeypatch.delitem(sys.modules, "xacro.substitution_args", raising=False)
    write(a_x=robot("<xacro:arm/>"))
    said(messages("a.xacro"))
