"""A model of an MJCF file beside MuJoCo's own, in the same state, for comparisons of accelerations."""

from dataclasses import replace

import mujoco
import numpy as np

from cosim.core.errors import InputError
from cosim.mechanics.multibody.assembly import close_loops, consistent_velocities
from cosim.mechanics.multibody.description.mjcf.reader import read_mjcf
from cosim.mechanics.multibody.model import Model

AHEAD = 1e-5  # s, of states between which constraint directions are differenced


class Pair:
    """A model and MuJoCo's of the same file, without contacts, limits, friction loss, fluid and actuators; equality
    constraints of MuJoCo are solved as rigid ones, with its own mass matrix and Jacobian."""

    def __init__(self, path):
        self.reference = mujoco.MjModel.from_xml_path(str(path))
        for what in ("CONTACT", "LIMIT", "FRICTIONLOSS", "ACTUATION"):
            self.reference.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{what}")
        self.reference.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.reference.opt.density = self.reference.opt.viscosity = 0.0
        self.data = mujoco.MjData(self.reference)
        robot = read_mjcf(path)
        gravity = robot.gravity_or(None)
        mechanism = robot.under(gravity)
        joints = tuple(replace(joint, friction=0.0) for joint in mechanism.joints)  # MuJoCo's is a constraint
        self.model = Model(replace(mechanism, joints=joints), gravity)
        self.start = self.model.neutral()
        for joint, values in (robot.start.positions if robot.start else {}).items():
            own = [k for k, name in enumerate(self.model.coordinate_names) if name.partition(".")[0] == joint]
            self.start[own] = values[: len(own)]

    def number(self, joint):
        found = mujoco.mj_name2id(self.reference, mujoco.mjtObj.mjOBJ_JOINT, joint)
        return found if found >= 0 else int(joint.rpartition("_")[2])

    def random_state(self, random, speed=2.0):
        """(q, v) with closed loops."""
        kept = np.zeros(self.model.nv, dtype=bool)
        q, v = self.model.random_configuration(random), random.uniform(-speed, speed, self.model.nv)
        if not self.model.constraint_rows:
            return q, v
        for _ in range(5):  # loops may not reach a random state
            try:
                q = close_loops(self.model, q, kept)
                return q, consistent_velocities(self.model, q, v, kept)
            except InputError:
                q = self.model.random_configuration(random)
        q = close_loops(self.model, self.start, kept)
        return q, consistent_velocities(self.model, q, v, kept)

    def accelerations(self, q, v, tau):
        """(nv,) of MuJoCo in the coordinates of the model: its quaternions begin with w, and the linear velocity of a
        free joint is along the axes of the world there, of the body here."""
        joints = []
        for joint in self.model.joints:
            n = self.number(joint.name)
            at, dof = self.reference.jnt_qposadr[n], self.reference.jnt_dofadr[n]
            own = [k for k, name in enumerate(self.model.coordinate_names) if name.partition(".")[0] == joint.name]
            dofs = [k for k, name in enumerate(self.model.dof_names) if name.partition(".")[0] == joint.name]
            values, speeds, efforts = q[own].copy(), v[dofs].copy(), tau[dofs].copy()
            rotation = np.eye(3)
            if joint.kind in ("free", "spherical"):
                values[-4:] = np.roll(values[-4:], 1)
            if joint.kind == "free":
                mujoco.mju_quat2Mat(flat := np.zeros(9), values[-4:])
                rotation = flat.reshape(3, 3)
                efforts[:3], speeds[:3] = rotation @ efforts[:3], rotation @ speeds[:3]
            joints.append((joint.kind, dof, dofs, rotation))
            self.data.qpos[at : at + len(own)] = values
            self.data.qvel[dof : dof + len(dofs)] = speeds
            self.data.qfrc_applied[dof : dof + len(dofs)] = efforts
        self._follow()
        solved = self._solved()
        found = np.zeros(self.model.nv)
        for kind, dof, dofs, rotation in joints:
            found[dofs] = solved[dof : dof + len(dofs)]
            if kind == "free":  # v_world = R v, so a = Rᵀ a_world − ω × v
                found[dofs[:3]] = rotation.T @ found[dofs[:3]] - np.cross(v[dofs[3:]], v[dofs[:3]])
        return found

    def _follow(self):
        """The state of joints that follow others."""
        for joint in self.model.mechanism.joints:
            if (mimic := joint.mimic) is not None:
                n, leader = self.number(joint.name), self.number(mimic.joint)
                at, of = self.reference.jnt_qposadr[n], self.reference.jnt_qposadr[leader]
                self.data.qpos[at] = mimic.multiplier * self.data.qpos[of] + mimic.offset
                at, of = self.reference.jnt_dofadr[n], self.reference.jnt_dofadr[leader]
                self.data.qvel[at] = mimic.multiplier * self.data.qvel[of]

    def _solved(self):
        """q̈ of M q̈ + Jᵀ λ = f, J q̈ = −J̇ v."""
        reference, data = self.reference, self.data
        mujoco.mj_forward(reference, data)
        M = np.zeros((reference.nv, reference.nv))
        mujoco.mj_fullM(reference, data, M)
        force = data.qfrc_smooth.copy()
        if not data.nefc:
            return np.linalg.solve(M, force)
        assert all(kind == mujoco.mjtConstraint.mjCNSTR_EQUALITY for kind in data.efc_type)
        v, q = data.qvel.copy(), data.qpos.copy()
        J, changes = self._directions(), []
        for sign in (1.0, -1.0):
            data.qpos[:] = q
            mujoco.mj_integratePos(reference, data.qpos, v, sign * AHEAD)
            mujoco.mj_fwdPosition(reference, data)
            changes.append(self._directions() @ v)
        data.qpos[:] = q
        bend = (changes[0] - changes[1]) / (2 * AHEAD)
        free = np.linalg.solve(M, force)
        W = np.linalg.solve(M, J.T)
        return free - W @ np.linalg.lstsq(J @ W, J @ free + bend, rcond=1e-10)[0]

    def _directions(self):
        return self.data.efc_J.reshape(-1, self.reference.nv)[: self.data.nefc].copy()


def written(folder, body, more=""):
    """The file of a model with these bodies."""
    path = folder / "model.xml"
    path.write_text(f'<mujoco model="m">{more}<worldbody>{body}</worldbody></mujoco>')
    return path


def compare(path, seed, tolerance=1e-9, speed=2.0, states=3):
    """Asserts equal accelerations in random states under random efforts; returns the pair."""
    pair, random = Pair(path), np.random.default_rng(seed)
    for _ in range(states):
        q, v = pair.random_state(random, speed)
        tau = random.uniform(-5.0, 5.0, pair.model.nv)
        expected = pair.accelerations(q, v, tau)
        equations = pair.model.equations  # in Python, which is sooner done than compiling it
        found = np.asarray(equations.forward_dynamics(q, v, tau - equations.friction_effort(v)), dtype=float)
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    return pair
