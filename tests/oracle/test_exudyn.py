"""Elastic links: motions equal exudyn's beams in absolute nodal coordinates, which know no floating frame.

Its cables are cut into elements, ours have modes: two discretisations of the same beam.
"""

import exudyn
import numpy as np
import yaml
from exudyn.itemInterface import LoadForceVector, RevoluteJoint2D

from benchmarks.peers_exudyn import Cables, tube
from cosim import load_rig
from cosim.mechanics.multibody import Model
from tests.kit.samples import FOLDER

TURN = 2.0 * np.pi
TIMES = np.linspace(0.0, 1.0, 51)  # s


def slew(t):
    """A turn by 1 rad and back within 1 s: angle, velocity, acceleration."""
    return 0.5 - 0.5 * np.cos(TURN * t), 0.5 * TURN * np.sin(TURN * t), 0.5 * TURN**2 * np.cos(TURN * t)


def integrate(rates, q, v, step, times, observe):
    """observe(q) at the times, by the classical method of Runge and Kutta; rates(t, q, v) = v̇."""
    found, k = [], 0
    for time in times:
        while k < round(time / step):
            t = k * step
            a1 = rates(t, q, v)
            v2 = v + 0.5 * step * a1
            a2 = rates(t + 0.5 * step, q + 0.5 * step * v, v2)
            v3 = v + 0.5 * step * a2
            a3 = rates(t + 0.5 * step, q + 0.5 * step * v2, v3)
            v4 = v + step * a3
            a4 = rates(t + step, q + step * v3, v4)
            q = q + step / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)
            v = v + step / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
            k += 1
        found.append(observe(q))
    return np.array(found)


def sample(name, folder, change, gravity=(0.0, 0.0, 0.0)):
    """The mechanism of a sample rig, changed."""
    mechanism = yaml.safe_load((FOLDER / "elastic" / f"{name}.yaml").read_text())["mechanism"]
    change(mechanism)
    path = folder / "changed.yaml"
    path.write_text(yaml.safe_dump({"name": name, "mechanism": mechanism, "schedule": {"step": 1e-3, "duration": 1.0}}))
    return Model(load_rig(path).plant.model.mechanism, gravity=gravity)


def arm_in_cables():
    """Paths of elbow and tool of an arm: its shoulder moves by `slew`, its elbow is free."""
    system, elbow = Cables(), np.array([0.8, 0.0])
    upper = system.cable([0.0, 0.0], 0.0, (0.8, 4, tube(25e-3)))
    fore = system.cable(elbow, np.pi / 3.0, (0.7, 4, tube(20e-3)))
    system.clamp_on_turning_axis(upper[0], lambda t: slew(t)[0])
    tool = elbow + 0.7 * np.array([0.5, np.sqrt(0.75)])
    masses = [system.mass(elbow, 1.2, [upper[1], fore[0]]), system.mass(tool, 0.8, [fore[1]])]
    return system.paths(masses, 1.0, 2.5e-4, TIMES)


def test_two_link_arm(tmp_path, modes=1, error=1.2e-3):
    """Errors of the paths relative to the largest deflection of the elbow, 28 mm."""

    def planar(mechanism):
        for body in mechanism["bodies"]:
            if "mass" in body:
                body["inertia"] = [1e-9] * 3
        for entry in mechanism["elastic"]:
            entry["beam"] |= {"modes": {"bend_y": modes}, "damping_ratio": 0}

    model = sample("two_link_arm", tmp_path, planar)
    held = np.array([name == "shoulder" for name in model.dof_names])
    q, zero = np.where(np.array(model.dof_names) == "elbow", np.pi / 3.0, 0.0), np.zeros(model.nv)

    def rates(t, q, v):
        angle, speed, acceleration = slew(t)
        q, v = np.where(held, angle, q), np.where(held, speed, v)
        return model.hybrid_dynamics(q, v, np.full(model.nv, acceleration), zero, held)[0]

    def places(q):
        return [model.frame_pose(q, frame)[:2, 3] for frame in ("elbow_motor", "tool")]

    found = integrate(rates, q, zero, 5e-4, TIMES, places)
    straight = np.array([[0.8 * np.cos(slew(t)[0]), 0.8 * np.sin(slew(t)[0])] for t in TIMES])
    largest = np.linalg.norm(found[:, 0] - straight, axis=1).max()
    assert 0.027 < largest < 0.029
    for k, path in enumerate(arm_in_cables()):
        assert np.abs(found[:, k] - path).max() < error * largest


def torque(t):
    return 60.0 * np.sin(TURN * t)  # N m


def test_craft_with_two_panels(tmp_path):
    """Turned about its centre by a torque; in cables its hub is two masses on a stiff bar. Errors of the angle and of
    the deflection of a tip, relative to the largest."""
    radius, inertia, panel = 0.6, 70.0, {"mass": 2.0, "EI": 900.0, "EA": 1e7}
    bar = {"mass": 0.1, "EI": 1e6, "EA": 1e8}
    system = Cables()
    _, right, center, left, last = system.cable(
        [0.0, -4.6], 0.5 * np.pi, (4.0, 4, panel), (radius, 1, bar), (radius, 1, bar), (4.0, 4, panel)
    )
    system.mbs.AddObject(RevoluteJoint2D(markerNumbers=[system.ground, system.place(center)]))
    for side, root in ((-1.0, right), (1.0, left)):
        node = system.mass([0.0, side * radius], 0.5 * inertia / radius**2, [root])

        def force(mbs, t, load, node=node):
            x, y, _ = mbs.GetNodeOutput(node, exudyn.OutputVariableType.Position)
            return [-0.5 * torque(t) * y / radius**2, 0.5 * torque(t) * x / radius**2, 0.0]

        system.mbs.AddLoad(LoadForceVector(markerNumber=system.place(node), loadVectorUserFunction=force))
    root, tip = system.paths([left, last], 1.0, 1e-3, TIMES)
    angle = np.arctan2(-root[:, 0], root[:, 1])
    deflection = -np.cos(angle) * tip[:, 0] - np.sin(angle) * tip[:, 1]

    def planar(mechanism):
        craft, _, *panels = mechanism["bodies"]
        mechanism["bodies"] = [craft | {"type": "revolute", "axis": [0, 0, 1]}, *panels]
        slender = {"stiffness": {"mass": panel["mass"], "EI": [panel["EI"]] * 2}, "modes": {"bend_y": 2}}
        mechanism["elastic"] = [
            entry | {"beam": entry["beam"] | slender | {"damping_ratio": 0}} for entry in mechanism["elastic"]
        ]

    model = sample("spacecraft", tmp_path, planar)
    turned, efforts = model.dof_names.index("base"), np.zeros(model.nv)

    def rates(t, q, v):
        efforts[turned] = torque(t)
        return model.forward_dynamics(q, v, efforts)

    def observed(q):
        x, y = model.frame_pose(q, "left_tip")[:2, 3]
        return q[turned], -np.cos(q[turned]) * x - np.sin(q[turned]) * y

    found = integrate(rates, np.zeros(model.nv), np.zeros(model.nv), 1e-3, TIMES, observed)
    assert 0.1 < np.abs(found[:, 1]).max() < 0.3
    for ours, theirs in zip(found.T, (angle, deflection), strict=True):
        assert np.abs(ours - theirs).max() < 3e-3 * np.abs(theirs).max()
