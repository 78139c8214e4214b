"""Accelerations of the SDF files of `tests/oracle/sdf` as Drake computes them, whose reader is libsdformat.

`python -m tests.kit.drake_figures` writes `tests/oracle/sdf/drake.yaml`. It needs the package `drake`, which no test
does: pip install --target FOLDER --no-deps drake, and FOLDER in PYTHONPATH. Written with Drake 1.51.1.

A figure has the state and the efforts by dof, and the accelerations. Of a free joint the dofs are as in this program:
velocities and accelerations of the origin along the axes of the body, position and quaternion (x, y, z, w) in
the world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml

from cosim.mechanics.multibody import Model

FOLDER = Path(__file__).parents[1] / "oracle" / "sdf"
FIGURES = FOLDER / "drake.yaml"
FREE = "root_joint"
STATES = 3
GRAVITY = (0.0, 0.0, -9.81)


def main() -> None:
    found = {path.stem: figures_of(path) for path in sorted(FOLDER.glob("*.sdf"))}
    FIGURES.write_text(yaml.safe_dump(found, sort_keys=False, default_flow_style=None, width=120))


def figures_of(path: Path) -> list[dict]:
    from pydrake.common.eigen_geometry import Quaternion
    from pydrake.math import RotationMatrix
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    plant = MultibodyPlant(0.0)
    parser = Parser(plant)
    parser.package_map().Add("gripper", str(FOLDER / "gripper"))
    parser.AddModels(str(path))
    plant.Finalize()
    plant.mutable_gravity_field().set_gravity_vector(GRAVITY)
    context, rng = plant.CreateDefaultContext(), np.random.default_rng(len(path.stem))
    joints = [plant.get_joint(index) for index in plant.GetJointIndices()]
    found = []
    for _ in range(STATES):
        q, v, tau = plant.GetPositions(context), np.zeros(plant.num_velocities()), np.zeros(plant.num_velocities())
        state: dict[str, dict[str, list[float]]] = {"position": {}, "velocity": {}, "effort": {}, "acceleration": {}}
        turns = {}
        for joint in (joint for joint in joints if joint.num_velocities()):
            at_q = slice(joint.position_start(), joint.position_start() + joint.num_positions())
            at_v = slice(joint.velocity_start(), joint.velocity_start() + joint.num_velocities())
            free = joint.num_positions() != joint.num_velocities()
            name = FREE if free else joint.name()
            speeds, efforts = rng.normal(size=(2, joint.num_velocities()))
            if free:
                turn, place = rng.normal(size=4), rng.normal(size=3)
                turn /= np.linalg.norm(turn)
                q[at_q] = [turn[3], *turn[:3], *place]
                R = RotationMatrix(Quaternion(q[at_q][:4])).matrix()
                v[at_v] = [*(R @ speeds[3:]), *(R @ speeds[:3])]
                turns[name] = R, at_v, speeds
                positions, efforts = [*place, *turn], np.zeros(6)
            else:
                positions = rng.uniform(-1.0, 1.0, joint.num_positions())
                q[at_q], v[at_v], tau[at_v] = positions, speeds, efforts
                turns[name] = None, at_v, speeds
            for key, values in (("position", positions), ("velocity", speeds), ("effort", efforts)):
                state[key][name] = [float(x) for x in values]
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        plant.get_applied_generalized_force_input_port().FixValue(context, tau)
        rates = plant.EvalTimeDerivatives(context).CopyToVector()[-plant.num_velocities() :]
        for name, (R, at_v, speeds) in turns.items():
            own = rates[at_v]
            if R is not None:
                own = np.concatenate([R.T @ own[3:] - np.cross(speeds[3:], speeds[:3]), R.T @ own[:3]])
            state["acceleration"][name] = [float(x) for x in own]
        found.append(state)
    return found


def error(model: Model, state: Mapping[str, Mapping[str, Sequence[float]]]) -> float:
    """The largest error of the accelerations of a model in a state of these figures, relative."""
    q, v, tau, expected = (
        _vector(names, state[key])
        for key, names in (
            ("position", model.coordinate_names),
            ("velocity", model.dof_names),
            ("effort", model.dof_names),
            ("acceleration", model.dof_names),
        )
    )
    found = np.asarray(model.equations.forward_dynamics(q, v, tau - model.friction_effort(v)), dtype=float)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _vector(names: Sequence[str], values: Mapping[str, Sequence[float]]) -> np.ndarray:
    """Values by joint in the order of the names, which may have the scope of a nested model before them."""
    found, used = [], {}
    for name in names:
        joint = name.rpartition("::")[2].partition(".")[0]
        k = used[joint] = used.get(joint, -1) + 1
        found.append(values[joint][k])
    return np.array(found)


if __name__ == "__main__":
    main()
