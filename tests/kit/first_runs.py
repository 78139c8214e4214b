"""`cosim new` and `cosim run` over every URDF file of the package example-robot-data.

    python -m tests.kit.first_runs [PART OF A NAME …] [--page]

prints a row per file: joints, seconds of computing time of `cosim new` and the first run together, with an empty cache,
and the largest tracking error as a fraction of the travel of its joint; or why the file is refused. `--page` writes the
table into docs/howto/bring-your-robot.md. Exit code 1 if a robot that can be read does not run as it should.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.oracle.conftest import ROBOTS

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "bring-your-robot.md"
HEAD = ("robot", "joints", "computing time", "error")
BEGIN = "| robot | joints |"
LARGEST_ERROR = 0.02  # of the travel of the joint
LONGEST = 600.0  # s


@dataclass(frozen=True)
class FirstRun:
    """problem: why it is refused, or what is wrong with the run; refused: whether `cosim new` refused the file."""

    robot: str
    joints: int = 0
    seconds: float = 0.0
    error: float = 0.0
    problem: str = ""
    refused: bool = False

    @property
    def row(self) -> tuple[str, ...]:
        if self.problem:
            return self.robot, "–", "–", f"{'refused: ' if self.refused else ''}{self.problem}"
        error = f"{self.error:.2%}" if self.joints else "–"
        return self.robot, str(self.joints), f"{self.seconds:.1f} s", error


def first_run(robot: str, folder: Path, *options: str) -> FirstRun:
    """Write a rig for a robot of the package and run it, both as a user would. folder: where to write it."""
    rig, summary = folder / "first.yaml", folder / "first.json"
    begun = _computed()
    new = _cosim(folder, "new", rig, ROBOTS / robot, "--force", *options)
    if new.returncode:
        line = new.stderr.splitlines()[0]
        more = len(new.stderr.splitlines()) - 1
        what = line.replace(f"{ROBOTS / robot}:", "line ")
        return FirstRun(robot, problem=what + (f" (and {more} more)" if more else ""), refused=True)
    run = _cosim(folder, "run", rig, "--json", summary)
    seconds = _computed() - begun
    if run.returncode:
        return FirstRun(robot, problem=run.stderr.strip())
    return judged(robot, seconds, json.loads(summary.read_text()), travels(rig))


def travels(rig: Path) -> dict[str, float]:
    """Joint -> the distance between its start and its goal."""
    from cosim.rig.sections.rig_spec import read_rig

    spec = read_rig(rig)
    return {
        joint: abs(goal - spec.joints[joint].initial_position)
        for controller in spec.controllers
        if controller.trajectory is not None
        for joint, goal in zip(controller.joints, controller.trajectory.params.goal, strict=True)
    }


def judged(robot: str, seconds: float, summary: dict, travel: dict[str, float]) -> FirstRun:
    """A run that ended: every joint follows its reference and no limit interfered."""
    errors = {joint: summary["joints"][joint]["error_max"] / size for joint, size in travel.items()}
    worst = max(errors, key=errors.__getitem__, default="")
    problem = ""
    if summary["guard"]:
        problem = f"limits of {', '.join(summary['guard'])}"
    elif errors and errors[worst] > LARGEST_ERROR:
        problem = f"'{worst}' is off by {errors[worst]:.1%} of its travel"
    elif summary["energy"]["residual_relative"] > 0.01:
        problem = f"energy residual {summary['energy']['residual_relative']:.1e}"
    return FirstRun(robot, len(travel), seconds, max(errors.values(), default=0.0), problem)


def _computed() -> float:
    """The computing time of all finished commands [s], which other programs do not lengthen much."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _cosim(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command line, with the cache in the folder."""
    environment = {**os.environ, "COSIM_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-m", "cosim", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False)


def table(runs: list[FirstRun]) -> str:
    head, *rows = (
        f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in [HEAD, *(r.row for r in runs)]
    )
    return "\n".join([head, "|---" * len(HEAD) + "|", *rows])


def main(arguments: list[str]) -> int:
    parts = [argument for argument in arguments if argument != "--page"]
    names = sorted(path.relative_to(ROBOTS).as_posix() for path in ROBOTS.rglob("*.urdf"))
    runs = []
    for name in (name for name in names if not parts or any(part in name for part in parts)):
        with tempfile.TemporaryDirectory() as folder:
            runs.append(first_run(name, Path(folder)))
        print(*runs[-1].row, sep="\t", flush=True)
    if "--page" in arguments:
        page = PAGE.read_text(encoding="utf-8")
        old = re.escape(BEGIN) + r".*?(?=\n\n|\n?\Z)"
        PAGE.write_text(re.sub(old, lambda _: table(runs), page, count=1, flags=re.DOTALL), encoding="utf-8")
    return int(any(run.problem and not run.refused for run in runs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
