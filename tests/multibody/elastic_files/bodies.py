"""The beam of `meshes` as an elastic link, its files, and mechanisms that it is part of."""

from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.io import mmwrite
from scipy.linalg import eigh

from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.elastic.beam import Beam, BeamSection, ModeCounts, constant
from cosim.mechanics.multibody.elastic.finite_elements import FiniteElements
from cosim.mechanics.multibody.elastic.modal_link import gram
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose
from tests.multibody.elastic_files.meshes import ABOUT_Y, ABOUT_Z, AREA, DENSITY, LENGTH, SHEAR, TORSION, YOUNG

TIP = np.array([LENGTH, 0.0, 0.0])
ROOT = Pose.identity()


def beam(counts, shear=None, **options):
    """shear: its stiffness relative to the section's, whose inertia then resists bending."""
    inertia = DENSITY * (ABOUT_Y + ABOUT_Z), DENSITY * ABOUT_Y, DENSITY * ABOUT_Z
    against_shear = constant(SHEAR * AREA * 5 / 6 * (shear or 1.0))
    section = BeamSection(
        constant(DENSITY * AREA),
        tuple(map(constant, inertia)),
        constant(YOUNG * AREA),
        constant(SHEAR * TORSION),
        (constant(YOUNG * ABOUT_Y), constant(YOUNG * ABOUT_Z)),
        (against_shear, against_shear),
    )
    return Beam(LENGTH, section, ModeCounts(*counts), shearing=shear is not None, stiffening=False, **options)


def files_of(mesh, folder, suffix=".npz", **options):
    """The files of a mesh, with the interfaces root and tip."""
    position, mass, stiffness = mesh
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    for name, matrix in (("mass", mass), ("stiffness", stiffness)):
        if suffix == ".npz":
            sparse.save_npz(folder / f"{name}.npz", matrix)
        else:
            mmwrite(folder / f"{name}.mtx", matrix, precision=17, symmetry="symmetric")
    lines = [f"{k},{x!r},{y!r},{z!r}" for k, (x, y, z) in enumerate(position.tolist(), 1)]
    (folder / "nodes.csv").write_text("\n".join(["node,x,y,z", *lines]) + "\n")
    given = {"interfaces": {"tip": nodes_at(position, LENGTH)}} | options
    matrices = folder / f"mass{suffix}", folder / f"stiffness{suffix}"
    return FiniteElements(*matrices, folder / "nodes.csv", nodes_at(position, 0.0), **given)


def nodes_at(position, x):
    return tuple(int(k) + 1 for k in np.flatnonzero(np.abs(position[:, 0] - x) < 1e-9))


def frequencies(link):
    """(m,) rad/s, of the link with its frame held"""
    return np.sqrt(eigh(link.stiffness, gram(link.modal), eigvals_only=True))


def arm(link, kind="revolute", tip=None, axis=(0.0, 0.0, 1.0)):
    """The link on a joint at its root, with a body at its tip."""
    links, joints = [Link("ground"), Link("arm", elastic=link)], []
    joints.append(Joint("hub", kind, "ground", "arm", ROOT, np.array(axis)))
    links.append(Link("tip", tip or Inertial(0.5, np.zeros(3), 1e-4 * np.eye(3))))
    joints.append(Joint("end", "fixed", "arm", "tip", Pose(np.eye(3), TIP)))
    return Model(Mechanism("arm", "ground", tuple(links), tuple(joints)), gravity=(0.0, 0.0, 0.0))


def swing(link, time=0.02, steps=100):
    """(steps + 1, 3) positions of the tip while a constant torque acts at the hub of `arm`."""
    model = arm(link)
    q, v, h = np.zeros(model.nq), np.zeros(model.nv), time / steps
    v[0] = 3.0
    tau = np.zeros(model.nv)
    tau[0] = 200.0

    def slope(q, v):
        return v, model.forward_dynamics(q, v, tau)

    places = [model.frame_pose(q, "tip")[:3, 3]]
    for _ in range(steps):
        k1 = slope(q, v)
        k2 = slope(q + 0.5 * h * k1[0], v + 0.5 * h * k1[1])
        k3 = slope(q + 0.5 * h * k2[0], v + 0.5 * h * k2[1])
        k4 = slope(q + h * k3[0], v + h * k3[1])
        q, v = (x + h / 6 * (a + 2 * b + 2 * c + d) for x, a, b, c, d in zip((q, v), k1, k2, k3, k4, strict=True))
        places.append(model.frame_pose(q, "tip")[:3, 3])
    return np.array(places)
