"""Every robot file in some folders, read and compared with another program.

    python -m tests.kit.wheel_robots FOLDER … [--part TEXT]

FOLDER holds unpacked wheels of robots, such as dm_control, gymnasium-robotics, robosuite, metaworld and pybullet. A row
per file is printed: dofs, the largest relative error in three random states, and what a rig does not take, or why the
file is refused. MJCF is compared with MuJoCo by accelerations, without contacts, limits, friction loss, fluid and
actuators, with equality constraints and armature of free joints at rest; URDF with Pinocchio by efforts; SDF with Drake
by accelerations, where that package is found (see `tests.kit.drake_figures`). Exit code 1 if an error is above 1e-6 or
a reader fails otherwise than by a refusal.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from cosim.core.errors import InputError
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.robot_formats import MOST_BYTES, read_robot
from tests.kit import drake_figures
from tests.oracle.mujoco_pair import Pair
from tests.oracle.pinocchio_reference import Reference

LARGEST_ERROR = 1e-6
MOST_DOFS = 120  # of a model that is compared
STATES = 3
HEAD = ("model", "dofs", "error", "not taken or refused")
Error = tuple[int, float]  # dofs, the largest relative error; NaN where there is nothing to compare


@dataclass(frozen=True)
class Compared:
    """A model that was compared; error: NaN where it was only read."""

    name: str
    dofs: str = "–"
    error: float = np.nan
    what: str = ""
    wrong: bool = False

    @property
    def row(self) -> str:
        error = "–" if np.isnan(self.error) else f"{self.error:.0e}"
        return f"| {self.name} | {self.dofs} | {error} | {self.what.replace('|', '/')} |"


def models_of(folder: Path) -> Iterator[Path]:
    """Files with a body, and not only parts of models."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".xml" and path.stat().st_size <= MOST_BYTES:
            text = path.read_text(errors="replace")
            if "<mujoco" in text and ("<body" in text or "<include" in text):
                yield path
        elif path.suffix in (".urdf", ".sdf"):
            yield path


def compared(path: Path, name: str) -> Compared:
    format, error_of = OF_SUFFIX[path.suffix]
    try:
        robot = read_robot(path, format)
        lost = [line.replace(f"{path}", "").lstrip(": ") for line in robot.mechanism.warnings]
        lost += [f"{actuator.name}: {actuator.lost}" for actuator in robot.actuators if actuator.lost]
        what = "; ".join(lost[:3]) + (f" (and {len(lost) - 3} more)" if len(lost) > 3 else "")
        dofs, error = error_of(path)
    except InputError as found:
        return Compared(name, what="refused: " + str(found).splitlines()[0].replace(str(path), "").lstrip(": "))
    except Exception:
        return Compared(name, what=traceback.format_exc().splitlines()[-1], wrong=True)
    return Compared(name, str(dofs), error, what, error > LARGEST_ERROR)


def against_mujoco(path: Path) -> Error:
    pair = Pair(path)
    if not 0 < pair.model.nv <= MOST_DOFS:
        return pair.model.nv, np.nan
    random, worst = np.random.default_rng(1), 0.0
    # armature of free joints acts alike only at rest
    otherwise = any(joint.kind == "free" and joint.rotor_inertia for joint in pair.model.joints)
    speed = 0.0 if pair.reference.neq or otherwise else 1.0
    for _ in range(STATES):
        q, v = pair.random_state(random, speed)
        tau = random.uniform(-1.0, 1.0, pair.model.nv)
        equations = pair.model.equations  # in Python: many models are evaluated a few times each
        found = np.asarray(equations.forward_dynamics(q, v, tau - equations.friction_effort(v)), dtype=float)
        worst = max(worst, relative(found, pair.accelerations(q, v, tau)))
    return pair.model.nv, worst


def against_pinocchio(path: Path) -> Error:
    """Inverse dynamics without the springs of Gazebo, which Pinocchio does not read."""
    mechanism = read_robot(path, "urdf").mechanism
    model = Model(replace(mechanism, joints=tuple(replace(joint, stiffness=0.0) for joint in mechanism.joints)))
    if not 0 < model.nv <= MOST_DOFS:
        return model.nv, np.nan
    try:
        reference = Reference(model, pin.buildModelFromUrdf(str(path)))
    except ValueError:  # of xacro, which is expanded here
        return model.nv, np.nan
    random, worst = np.random.default_rng(1), 0.0
    for _ in range(STATES):
        q, v, qdd = model.random_configuration(random), *random.uniform(-3, 3, (2, model.nv))
        found = np.asarray(model.equations.inverse_dynamics(q, v, qdd), dtype=float)
        worst = max(worst, relative(found, reference.inverse(q, v, qdd)))
    return model.nv, worst


def against_drake(path: Path) -> Error:
    """Without dry friction, which Drake does not read."""
    mechanism = read_robot(path, "sdf").under(drake_figures.GRAVITY)
    joints = tuple(replace(joint, friction=0.0) for joint in mechanism.joints)
    model = Model(replace(mechanism, joints=joints), drake_figures.GRAVITY)
    heavy = all(link.inertial is None or link.inertial.mass for link in mechanism.links)  # Drake drops other inertias
    if importlib.util.find_spec("pydrake") is None or not heavy or not 0 < model.nv <= MOST_DOFS:
        return model.nv, np.nan
    try:
        figures = drake_figures.figures_of(path)
    except RuntimeError:  # elements that libsdformat does not know
        return model.nv, np.nan
    return model.nv, max(drake_figures.error(model, state) for state in figures)


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-9))


# suffix -> format, the comparison
OF_SUFFIX: dict[str, tuple[str, Callable[[Path], Error]]] = {
    ".xml": ("mjcf", against_mujoco),
    ".urdf": ("urdf", against_pinocchio),
    ".sdf": ("sdf", against_drake),
}


def main(arguments: list[str]) -> int:
    part = arguments[arguments.index("--part") + 1] if "--part" in arguments else ""
    folders = [Path(a) for k, a in enumerate(arguments) if a != "--part" and (not k or arguments[k - 1] != "--part")]
    print(f"| {' | '.join(HEAD)} |\n{'|---' * len(HEAD)}|")
    wrong = False
    for folder in folders:
        for path in models_of(folder):
            name = path.relative_to(folder).as_posix()
            if part in name:
                found = compared(path, name)
                wrong |= found.wrong
                print(found.row, flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
