"""Every MJCF model in some folders, read and compared with MuJoCo.

    python -m tests.kit.mjcf_robots FOLDER … [--part TEXT]

FOLDER holds unpacked wheels of MJCF models, such as those of dm_control, gymnasium-robotics, robosuite and metaworld.
Prints a row per file: joints, the largest error of accelerations against MuJoCo, relative, in three random states, and
what a rig does not take, or why the file is refused. MuJoCo is without contacts, limits, friction loss, fluid and
actuators, and equality constraints are compared at rest. Exit code 1 if an error is above 1e-6 or a reader fails
otherwise than by a refusal.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError
from cosim.mechanics.multibody.description.mjcf.reader import read_mjcf
from cosim.mechanics.multibody.description.robot_formats import MOST_BYTES
from tests.oracle.mujoco_pair import Pair

LARGEST_ERROR = 1e-6
MOST_DOFS = 120  # of a model whose accelerations are compared
HEAD = ("model", "dofs", "error", "not taken or refused")


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
    for path in sorted(folder.rglob("*.xml")):
        text = path.read_text(errors="replace") if path.stat().st_size <= MOST_BYTES else ""
        if "<mujoco" in text and ("<body" in text or "<include" in text):
            yield path


def compared(path: Path, name: str) -> Compared:
    try:
        robot = read_mjcf(path)
    except InputError as error:
        return Compared(name, what="refused: " + str(error).splitlines()[0].replace(str(path), "").lstrip(": "))
    except Exception:
        return Compared(name, what=traceback.format_exc().splitlines()[-1], wrong=True)
    lost = [line.replace(f"{path}", "").lstrip(": ") for line in robot.mechanism.warnings]
    lost += [f"{actuator.name}: {actuator.lost}" for actuator in robot.actuators if actuator.lost]
    what = "; ".join(lost[:3]) + (f" (and {len(lost) - 3} more)" if len(lost) > 3 else "")
    try:
        pair = Pair(path)
        dofs = str(pair.model.nv)
        if pair.model.nv > MOST_DOFS or not pair.model.nv:
            return Compared(name, dofs, what=what)
        error = error_of(pair)
    except InputError as found:
        message = str(found).splitlines()[0].replace(str(path), "").lstrip(": ")
        return Compared(name, what=f"refused: {message}")
    except Exception:
        return Compared(name, what=traceback.format_exc().splitlines()[-1], wrong=True)
    return Compared(name, dofs, error, what, error > LARGEST_ERROR)


def error_of(pair: Pair) -> float:
    random, worst = np.random.default_rng(1), 0.0
    speed = 0.0 if pair.reference.neq else 1.0
    for _ in range(3):
        q, v = pair.random_state(random, speed)
        tau = random.uniform(-1.0, 1.0, pair.model.nv)
        expected = pair.accelerations(q, v, tau)
        equations = pair.model.equations  # in Python: many models are evaluated a few times each
        found = np.asarray(equations.forward_dynamics(q, v, tau - equations.friction_effort(v)), dtype=float)
        worst = max(worst, float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-9)))
    return worst


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
