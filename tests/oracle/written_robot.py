"""A model beside the one that is read back from the file that it was written to."""

import numpy as np

from cosim.apps.derive import robot_export
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.assembly import close_loops, find_redundant
from cosim.mechanics.multibody.description.export.writer import robot_text
from cosim.mechanics.multibody.description.robot_formats import format_of, read_robot
from cosim.mechanics.multibody.mechanism import GRAVITY


class WrittenRobot:
    """`before` and `after` as models, their dofs and coordinates in pairs: (k, 2) each."""

    def __init__(self, source, output):
        robot_export.export_model(source, output)
        self.before, self.start, _ = robot_export._read(source, ())
        self._read_back(output)

    @classmethod
    def of(cls, mechanism, output):
        """Of a mechanism under the usual gravity, with what its format loses and notes."""
        found = cls.__new__(cls)
        found.before = Model(mechanism)
        found.start = np.array(found.before.neutral(), dtype=float)
        found.text = robot_text(mechanism, output.suffix, GRAVITY)
        output.write_text(found.text.text, encoding="utf-8")
        found._read_back(output)
        return found

    def _read_back(self, output):
        self.robot = read_robot(output, format_of(output))
        gravity = self.before.gravity if output.suffix == ".urdf" else self.robot.gravity_or(None)
        self.after = Model(self.robot.under(gravity), gravity)
        # in SDF the pose of the file is coordinate 0
        self.zeros = robot_export._positions(self.before, self.start) if output.suffix == ".sdf" else {}
        self.dofs, self.coordinates = self._pairs()

    def _pairs(self):
        there, dofs, coordinates = parts(self.after), [], []
        free = {joint.child: name for name, (joint, *_) in there.items() if joint.kind == "free"}
        for name, (joint, kind, q, v) in parts(self.before).items():
            other = free[joint.child] if joint.kind == "free" else name
            if other in there and there[other][1].nv == kind.nv:
                dofs += zip(v, there[other][3], strict=True)
                coordinates += zip(q, there[other][2], strict=True)
                continue
            for k, (dof, _) in enumerate(kind.dofs):  # joints in series; MJCF has no joint that closes a loop
                if f"{name}_{dof}" not in there:
                    continue
                dofs.append((v[k], there[f"{name}_{dof}"][3][0]))
                coordinates.append((q[k], there[f"{name}_{dof}"][2][0]))
        return np.array(dofs, dtype=int).reshape(-1, 2), np.array(coordinates, dtype=int).reshape(-1, 2)

    def there(self, vector):
        """A vector of dofs of the first model, of the second one."""
        found = np.zeros(self.after.nv)
        found[self.dofs[:, 1]] = vector[self.dofs[:, 0]]
        return found

    def positions(self, q):
        moved = q.copy()
        for name, (joint, _, own, _) in parts(self.before).items():
            if name in self.zeros:
                moved[own] = [0.0, 0.0, 0.0, 1.0] if joint.kind == "spherical" else moved[own] - self.zeros[name]
        found = np.array(self.after.neutral(), dtype=float)
        found[self.coordinates[:, 1]] = moved[self.coordinates[:, 0]]
        if not self.after.constraint_rows:
            return found
        return close_loops(self.after, found, ~self._added())

    def _added(self):
        """Dofs that the second model has alone."""
        alone = np.ones(self.after.nv, dtype=bool)
        alone[self.dofs[:, 1]] = False
        return alone

    def inverse_dynamics(self, random):
        """(efforts of both) in a random state of a tree."""
        q = np.array(self.before.random_configuration(random), dtype=float)
        v, qdd = random.normal(size=(2, self.before.nv))
        first = self.before.equations.inverse_dynamics(q, v, qdd)
        second = self.after.equations.inverse_dynamics(self.positions(q), self.there(v), self.there(qdd))
        return np.asarray(first)[self.dofs[:, 0]], np.asarray(second)[self.dofs[:, 1]]

    def accelerations(self, random):
        """(accelerations of both) at the start, in a motion that keeps loops closed, under random efforts."""
        q, tau, v = self.start, random.normal(size=self.before.nv), random.normal(size=self.before.nv)
        there = self.positions(q)
        first, second = without_redundant(self.before, q), without_redundant(self.after, there)
        tau[np.setdiff1d(np.arange(self.before.nv), self.dofs[:, 0])] = 0.0
        v = v if not first.constraint_rows else nullspace(np.asarray(first.constraint_jacobian(q))) @ v
        speeds = self.there(v)
        if second.constraint_rows and self._added().any():
            G, added = np.asarray(second.constraint_jacobian(there)), self._added()
            speeds[added] = np.linalg.lstsq(G[:, added], -G @ speeds, rcond=None)[0]
        found = []
        for model, at, rate, efforts in ((first, q, v, tau), (second, there, speeds, self.there(tau))):
            net = efforts - model.friction_effort(rate)
            found.append(np.asarray(model.equations.forward_dynamics(at, rate, net)))
        return found[0][self.dofs[:, 0]], found[1][self.dofs[:, 1]]


def parts(model):
    """Joint -> (joint, kind, its coordinates, its dofs)."""
    found, nq, nv = {}, 0, 0
    for joint, kind in zip(model.joints, model.kinds, strict=True):
        if kind.nv:
            found[joint.name] = joint, kind, range(nq, nq + kind.nq), range(nv, nv + kind.nv)
        nq, nv = nq + kind.nq, nv + kind.nv
    return found


def without_redundant(model, q):
    if not model.constraint_rows:
        return model
    return model.without(find_redundant(model, q, np.zeros(model.nv, dtype=bool)))


def nullspace(G):
    """The projection on the motions that keep G v = 0."""
    _, sizes, directions = np.linalg.svd(G)
    free = directions[int((sizes > 1e-9 * sizes[0]).sum()) :]
    return free.T @ free
