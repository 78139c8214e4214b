"""Small robot files with closed loops, drawn where the loops close, as text: see `LOOP_ROBOTS`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

Point = tuple[float, float, float]
WIDTH = 0.02  # m, of the bars


class LoopRobot(NamedTuple):
    """A robot file with closed loops. independent: how many joints a drive moves by itself; actuated: of each one those
    that it may be: what the file actuates, else what is nearest to the base."""

    file: str
    text: str
    independent: int
    actuated: tuple[frozenset[str], ...]


# --- SDF: every link has its frame at its joint, along the axes of the model ---


def _sdf_link(name: str, at: Point, to: Point, mass: float) -> str:
    """A bar from its joint to a point, both in the model."""
    com = [0.5 * (b - a) for a, b in zip(at, to, strict=True)]
    inertia = mass * (math.dist(at, to) ** 2 + WIDTH**2) / 12.0
    return (
        f'<link name="{name}"><pose>{_words(at)} 0 0 0</pose>'
        f"<inertial><pose>{_words(com)} 0 0 0</pose><mass>{mass}</mass>"
        f"<inertia><ixx>{inertia}</ixx><iyy>{inertia}</iyy><izz>{inertia}</izz></inertia></inertial></link>"
    )


def _sdf_joint(
    name: str, parent: str, child: str, kind: str, axis: Point, at: Point = (0, 0, 0), limits: str = ""
) -> str:
    """at: in the frame of the child."""
    limit = f"<limit>{limits}</limit>" if limits else ""
    return (
        f'<joint name="{name}" type="{kind}"><pose>{_words(at)} 0 0 0</pose><parent>{parent}</parent>'
        f"<child>{child}</child><axis><xyz>{_words(axis)}</xyz>{limit}</axis></joint>"
    )


def _sdf(name: str, *parts: str) -> str:
    return "\n".join([f'<sdf version="1.9"><model name="{name}">', *parts, "</model></sdf>", ""])


def sdf_slider_crank() -> str:
    """The rod ends in the slider, which a prismatic joint guides."""
    crank, rod = _at(0.1, 60), 0.3
    end = (crank[0] + math.sqrt(rod**2 - crank[1] ** 2), 0.0, 0.0)
    beyond = (end[0] + 0.05, 0.0, 0.0)
    z, x = (0, 0, 1), (1, 0, 0)
    return _sdf(
        "slider_crank",
        _sdf_link("crank", (0, 0, 0), crank, 0.5),
        _sdf_link("rod", crank, end, 0.8),
        _sdf_link("slider", end, beyond, 1.0),
        _sdf_joint("turn", "world", "crank", "revolute", z),
        _sdf_joint("big_end", "crank", "rod", "revolute", z),
        _sdf_joint("small_end", "rod", "slider", "revolute", z),
        _sdf_joint("guide", "world", "slider", "prismatic", x, limits="<lower>-0.1</lower><upper>0.1</upper>"),
    )


CRANK, ROCKER_BASE, ROCKER = ((0.0, 0.1, 0.0), (0.4, 0.0, 0.0), (0.35, 0.25, 0.0))


def sdf_four_bar() -> str:
    """A crank–rocker."""
    z, tip = (0, 0, 1), _minus(ROCKER, ROCKER_BASE)
    return _sdf(
        "four_bar",
        _sdf_link("crank", (0, 0, 0), CRANK, 0.5),
        _sdf_link("coupler", CRANK, ROCKER, 0.8),
        _sdf_link("rocker", ROCKER_BASE, ROCKER, 0.6),
        _sdf_joint("turn", "world", "crank", "revolute", z),
        _sdf_joint("pin", "crank", "coupler", "revolute", z),
        _sdf_joint("swing", "world", "rocker", "revolute", z, limits="<lower>-0.5</lower><upper>0.5</upper>"),
        _sdf_joint("close", "coupler", "rocker", "revolute", z, tip),
    )


# --- MJCF: bodies in a chain, at rest in the pose that is drawn ---


def _mjcf(name: str, bodies: str, more: str) -> str:
    return (
        f'<mujoco model="{name}"><compiler angle="radian" autolimits="true"/>\n<option gravity="0 -9.81 0"/>\n'
        f"<worldbody>\n{bodies}\n</worldbody>\n{more}\n</mujoco>\n"
    )


def _body(name: str, at: Point, to: Point, joint: str, *inside: str) -> str:
    """A bar from its joint to a point in its frame; at: in the frame of its parent."""
    bar = (
        f'<geom type="capsule" fromto="0 0 0 {_words(to)}" size="{WIDTH}" density="1000" contype="0" conaffinity="0"/>'
    )
    return f'<body name="{name}" pos="{_words(at)}">{joint}{bar}{"".join(inside)}</body>'


def _hinge(name: str, axis: str = "0 0 1", more: str = "") -> str:
    return f'<joint name="{name}" axis="{axis}" {more}/>'


def _minus(a: Sequence[float], b: Sequence[float]) -> Point:
    x, y, z = (p - q for p, q in zip(a, b, strict=True))
    return x, y, z


def _four_bar(name: str, closed: str, actuator: str, inside: str = "") -> str:
    coupler = _body("coupler", CRANK, _minus(ROCKER, CRANK), _hinge("pin"), inside)
    bodies = [
        _body("crank", (0, 0, 0), CRANK, _hinge("turn"), coupler),
        _body("rocker", ROCKER_BASE, _minus(ROCKER, ROCKER_BASE), _hinge("swing", more='range="-0.5 0.5"')),
    ]
    return _mjcf(name, "\n".join(bodies), f"<equality>{closed}</equality>{actuator}")


def mjcf_four_bar() -> str:
    """The file actuates the rocker."""
    anchor = _words(_minus(ROCKER, CRANK))
    return _four_bar(
        "four_bar",
        f'<connect body1="coupler" body2="rocker" anchor="{anchor}"/>',
        '<actuator><motor name="m" joint="swing" ctrlrange="-30 30"/></actuator>',
    )


def mjcf_weld() -> str:
    """The last body of a chain, which a hinge carries at the end of the coupler, is welded to the rocker."""
    tip = _body("tip", _minus(ROCKER, CRANK), (0.0, 0.05, 0.0), _hinge("wrist"))
    return _four_bar("welded", '<weld body1="tip" body2="rocker"/>', "", tip)


def mjcf_joints() -> str:
    """Two hinges that both have motors, one of which turns as a polynomial of the other."""
    bodies = [
        _body("a", (0, 0, 0), (0.2, 0, 0), _hinge("first")),
        _body("b", (0.5, 0, 0), (0.2, 0, 0), _hinge("second")),
    ]
    closed = '<equality><joint joint1="second" joint2="first" polycoef="0 0.5 0.2 0 0"/></equality>'
    motors = "".join(f'<motor name="m_{j}" joint="{j}" ctrlrange="-30 30"/>' for j in ("first", "second"))
    return _mjcf("coupled", "\n".join(bodies), f"{closed}<actuator>{motors}</actuator>")


def mjcf_delta() -> str:
    """A delta: three arms that turn about tangents of the base, rods on balls, and a platform that does not turn."""
    base, platform, arm, height = 0.2, 0.08, 0.15, 0.4
    bodies, closed = [], []
    for k in range(3):
        angle = math.radians(120.0 * k)
        out = (math.cos(angle), math.sin(angle), 0.0)
        tangent = (-out[1], out[0], 0.0)
        knee = tuple(arm * x for x in out)
        rod = (*((platform - base - arm) * x for x in out[:2]), -height)
        ball = _body(f"rod_{k}", knee, rod, f'<joint name="ball_{k}" type="ball"/>')  # type: ignore[arg-type]
        bodies.append(_body(f"arm_{k}", tuple(base * x for x in out), knee, _hinge(f"arm_{k}", _words(tangent)), ball))  # type: ignore[arg-type]
        point = _words(tuple(platform * x for x in out))
        closed.append(f'<connect body1="platform" body2="rod_{k}" anchor="{point}"/>')
    drawn = _body("platform", (0.0, 0.0, -height), (0.0, 0.0, -0.02), _slides())
    motors = "".join(f'<motor joint="arm_{k}" ctrlrange="-30 30"/>' for k in range(3))
    text = _mjcf(
        "delta", "\n".join([*bodies, drawn]), f"<equality>{''.join(closed)}</equality><actuator>{motors}</actuator>"
    )
    return text.replace('gravity="0 -9.81 0"', 'gravity="0 0 -9.81"')


def _slides() -> str:
    """The platform of a delta does not turn: pairs of rods hold it."""
    return "".join(
        f'<joint name="{name}" type="slide" axis="{axis}"/>'
        for name, axis in (("x", "1 0 0"), ("y", "0 1 0"), ("z", "0 0 1"))
    )


def mjcf_gripper() -> str:
    """A parallel gripper at the end of an arm: each finger is the coupler of a parallelogram, and the second finger's
    crank turns against the first one's."""
    fingers, closed = [], []
    for side, sign in (("left", 1.0), ("right", -1.0)):
        reach = (0.06, sign * 0.02, 0.0)
        finger = _body(f"{side}_finger", reach, (0.05, 0.0, 0.0), _hinge(f"{side}_tip"))
        fingers.append(_body(f"{side}_crank", (0.1, sign * 0.02, 0.0), reach, _hinge(f"{side}_drive"), finger))
        fingers.append(_body(f"{side}_link", (0.1, sign * 0.05, 0.0), reach, _hinge(f"{side}_idle")))
        closed.append(f'<connect body1="{side}_finger" body2="{side}_link" anchor="0 {sign * 0.03} 0"/>')
    closed.append('<joint joint1="right_drive" joint2="left_drive" polycoef="0 -1 0 0 0"/>')
    arm = _body("hand", (0, 0, 0), (0.1, 0, 0), _hinge("wrist"), *fingers)
    motors = '<motor joint="wrist" ctrlrange="-60 60"/><motor joint="left_drive" ctrlrange="-20 20"/>'
    return _mjcf("gripper", arm, f"<equality>{''.join(closed)}</equality><actuator>{motors}</actuator>")


# --- URDF ---


def urdf_mimic() -> str:
    """A parallelogram whose joints follow its crank."""
    links = "".join(
        f'<link name="{name}"><inertial><origin xyz="0.1 0 0"/><mass value="0.5"/>'
        '<inertia ixx="0.002" iyy="0.002" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name in ("crank", "coupler", "rocker")
    )
    joints = "".join(
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{name_of}"/>'
        f'<origin xyz="{at} 0 0"/><axis xyz="0 1 0"/>'
        f'<limit lower="-1" upper="1" effort="50" velocity="3"/>{mimic}</joint>'
        for name, parent, name_of, at, mimic in (
            ("turn", "base", "crank", 0.0, ""),
            ("pin", "crank", "coupler", 0.2, '<mimic joint="turn" multiplier="-1"/>'),
            ("swing", "base", "rocker", 0.3, '<mimic joint="turn"/>'),
        )
    )
    return f'<robot name="parallelogram"><link name="base"/>{links}{joints}</robot>\n'


# --- USD: bodies at their joints, along the axes of the stage ---


def usd_four_bar() -> str:
    """The last joint closes the loop."""
    bodies = [
        _usd_body("crank", (0.0, 0.0, 0.0), CRANK, 0.5),
        _usd_body("coupler", CRANK, ROCKER, 0.8),
        _usd_body("rocker", ROCKER_BASE, ROCKER, 0.6),
    ]
    joints = [
        _usd_hinge("turn", "", "crank", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        _usd_hinge("pin", "crank", "coupler", CRANK, (0.0, 0.0, 0.0)),
        _usd_hinge("swing", "", "rocker", ROCKER_BASE, (0.0, 0.0, 0.0)),
        _usd_hinge("close", "coupler", "rocker", _minus(ROCKER, CRANK), _minus(ROCKER, ROCKER_BASE)),
    ]
    head = '#usda 1.0\n( defaultPrim = "four_bar"\n metersPerUnit = 1\n kilogramsPerUnit = 1\n upAxis = "Z" )'
    return "\n".join([head, 'def Xform "four_bar" {', *bodies, *joints, "}", ""])


def _usd_body(name: str, at: Point, to: Point, mass: float) -> str:
    com, inertia = [0.5 * x for x in _minus(to, at)], mass * (math.dist(at, to) ** 2 + WIDTH**2) / 12.0
    apis = '( prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"] )'
    return (
        f'def Xform "{name}" {apis} {{\ndouble3 xformOp:translate = ({_comma(at)})\n'
        'uniform token[] xformOpOrder = ["xformOp:translate"]\n'
        f"float physics:mass = {mass}\npoint3f physics:centerOfMass = ({_comma(com)})\n"
        f"float3 physics:diagonalInertia = ({_comma([inertia] * 3)})\n}}"
    )


def _usd_hinge(name: str, parent: str, child: str, on_parent: Point, on_child: Point) -> str:
    first = f"rel physics:body0 = </four_bar/{parent}>\n" if parent else ""
    return (
        f'def PhysicsRevoluteJoint "{name}" {{\n{first}rel physics:body1 = </four_bar/{child}>\n'
        f'uniform token physics:axis = "Z"\npoint3f physics:localPos0 = ({_comma(on_parent)})\n'
        f"point3f physics:localPos1 = ({_comma(on_child)})\n}}"
    )


def _comma(numbers: Sequence[float]) -> str:
    return ", ".join(f"{x:.12g}" for x in numbers)


def _at(length: float, degrees: float) -> Point:
    return length * math.cos(math.radians(degrees)), length * math.sin(math.radians(degrees)), 0.0


def _words(numbers: Sequence[float]) -> str:
    return " ".join(f"{x:.12g}" for x in numbers)


# --- loops at rest where they cannot be actuated as drawn ---


def mjcf_slider(degrees: float, actuated: str) -> str:
    """A slider-crank whose crank is at an angle, with a motor on one joint."""
    crank, rod = _at(0.1, degrees), 0.3
    end = (crank[0] + math.sqrt(rod**2 - crank[1] ** 2), 0.0, 0.0)
    rest = _minus(end, crank)
    bodies = [
        _body("crank", (0, 0, 0), crank, _hinge("turn"), _body("rod", crank, rest, _hinge("big_end"))),
        _body("slider", end, (0.05, 0, 0), '<joint name="guide" type="slide" axis="1 0 0"/>'),
    ]
    closed = f'<equality><connect body1="rod" body2="slider" anchor="{_words(rest)}"/></equality>'
    return _mjcf("slider_crank", "\n".join(bodies), f'{closed}<actuator><motor joint="{actuated}"/></actuator>')


def mjcf_free_coupler() -> str:
    """A four-bar whose coupler is a free body between two points: besides it turns about its own axis."""
    reach = _minus(ROCKER, CRANK)
    bodies = [
        _body("crank", (0, 0, 0), CRANK, _hinge("turn")),
        _body("rocker", ROCKER_BASE, _minus(ROCKER, ROCKER_BASE), _hinge("swing")),
        _body("coupler", CRANK, reach, '<freejoint name="float"/>'),
    ]
    ends = ("crank", (0.0, 0.0, 0.0)), ("rocker", reach)
    closed = "".join(f'<connect body1="coupler" body2="{link}" anchor="{_words(at)}"/>' for link, at in ends)
    return _mjcf("four_bar", "\n".join(bodies), f"<equality>{closed}</equality>")


def mjcf_parallelogram(degrees: float, limits: str = "") -> str:
    """Flat at 0: there it may also become a crossed one."""
    crank, coupler = _at(0.2, degrees), (0.4, 0.0, 0.0)
    chain = _body("coupler", crank, coupler, _hinge("pin"))
    bodies = [
        _body("crank", (0, 0, 0), crank, _hinge("turn", more=limits), chain),
        _body("rocker", coupler, crank, _hinge("swing")),
    ]
    closed = f'<equality><connect body1="coupler" body2="rocker" anchor="{_words(coupler)}"/></equality>'
    return _mjcf("parallelogram", "\n".join(bodies), closed)


LOOP_ROBOTS = {
    "SDF slider-crank": LoopRobot("robot.sdf", sdf_slider_crank(), 1, (frozenset({"turn", "guide"}),)),
    "SDF four-bar": LoopRobot("robot.sdf", sdf_four_bar(), 1, (frozenset({"turn", "swing"}),)),
    "MJCF four-bar by connect": LoopRobot("robot.xml", mjcf_four_bar(), 1, (frozenset({"swing"}),)),
    "MJCF weld": LoopRobot("robot.xml", mjcf_weld(), 1, (frozenset({"turn", "swing"}),)),
    "MJCF joint equality": LoopRobot("robot.xml", mjcf_joints(), 1, (frozenset({"first"}),)),
    "URDF with mimic": LoopRobot("robot.urdf", urdf_mimic(), 1, (frozenset({"turn"}),)),
    "USD four-bar": LoopRobot("robot.usda", usd_four_bar(), 1, (frozenset({"turn", "swing"}),)),
    "delta": LoopRobot("robot.xml", mjcf_delta(), 3, tuple(frozenset({f"arm_{k}"}) for k in range(3))),
    "parallel gripper": LoopRobot("robot.xml", mjcf_gripper(), 2, (frozenset({"wrist"}), frozenset({"left_drive"}))),
}
