"""Small robot files for the tests of `cosim new`."""

from __future__ import annotations

INERTIAL = '<inertial><origin xyz="{com}"/><mass value="{mass}"/>{inertia}</inertial>'
SOLID = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'


def link(name: str, mass: float = 1.0, com: str = "0.2 0 0") -> str:
    """A link; of mass 0: one without inertial."""
    inertial = INERTIAL.format(com=com, mass=mass, inertia=SOLID) if mass else ""
    return f'<link name="{name}">{inertial}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", limit: str = "", inside: str = "") -> str:
    limits = f"<limit {limit}/>" if limit else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>{limits}{inside}</joint>'
    )


def robot(*parts: str, name: str = "bot") -> str:
    return "\n".join([f'<robot name="{name}">', *parts, "</robot>"]) + "\n"


LIMIT = 'lower="-2" upper="2" effort="50" velocity="3"'
ARM = robot(
    link("base", 0),
    link("upper"),
    link("fore"),
    joint("shoulder", "base", "upper", limit=LIMIT),
    joint("elbow", "upper", "fore", limit=LIMIT),
    name="arm",
)


def one_joint(kind: str = "revolute", limit: str = LIMIT, inside: str = "") -> str:
    """A robot with the joint `j`."""
    return robot(link("base", 0), link("tip"), joint("j", "base", "tip", kind, limit, inside))
