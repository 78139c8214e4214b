"""Contacts beside Drake: a cube that slides down a slope, and a quadruped that is dropped."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.legged_robots import SOLO
from benchmarks.paired_timing import Budget, RepeatedCall
from benchmarks.peers_drake import CubeInDrake, RobotInDrake
from benchmarks.rows import BenchCase, Measurement, beside
from benchmarks.rows_contact import ACCURATE_DROP, ACCURATE_END, FINEST, PAIRS, SOLO_12, base_after, rig_of
from benchmarks.rows_runs import loop_alone
from cosim import load_rig
from cosim.rig.rig import Rig

STEP, EDGE, SLOPE, G = 1e-3, 0.2, math.atan(0.5), 9.81  # s, m, rad, m/s²
END = 10  # s, of the cube


def _beside_drake(
    rig: Rig, steps: int, what: str, error: float, build: Callable[[], Callable[[], float]], budget: Budget
) -> Measurement:
    """Per step. error: of ours [m]; build() returns a run of Drake that returns its error."""
    note = f"error of {what}: {error:.1e} m here"

    def ours(n: int) -> None:
        for _ in range(n):
            loop_alone(rig, steps + 1)

    def peer() -> tuple[RepeatedCall, None]:
        nonlocal note
        run = build()
        note += f", {run():.1e} m there"

        def block(n: int) -> None:
            for _ in range(n):
                run()

        return block, None

    found = beside(ours, peer, replace(budget, pairs=min(PAIRS, budget.pairs)))
    return Measurement(found.samples.per(steps, steps), note="; ".join(part for part in (found.note, note) if part))


def _cube(friction: float, end: float) -> Rig:
    """Rigid, on its corners."""
    inertia, half = [EDGE**2 / 6] * 3, EDGE / 2
    place = [math.sin(SLOPE) * half, 0.0, math.cos(SLOPE) * half, 0.0, math.sin(SLOPE / 2), 0.0, math.cos(SLOPE / 2)]
    corners = [[x, y, -half] for x in (-half, half) for y in (-half, half)]
    contacts = "".join(
        f"    - {{name: corner_{k}, link: cube, point: {corner}, with: ground, stiffness: rigid}}\n"
        for k, corner in enumerate(corners)
    )
    text = f"""\
name: cube
mechanism:
  ground: {{rpy: [0, {SLOPE}, 0], friction: {friction}}}
  bodies: [{{name: cube, type: free, mass: 1, inertia: {inertia}}}]
  contacts:
{contacts}joints: {{cube: {{initial: {{position: {place}}}}}}}
schedule: {{step: {STEP}, duration: {end}}}
"""
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "cube.yaml").write_text(text)
        return load_rig(path, interpret=False)


def cube(friction: float, budget: Budget) -> Measurement:
    """Slides for 10 s, or sticks."""
    end = budget.of(END)
    rig, steps = _cube(friction, end), round(end / STEP)
    exact = 0.5 * G * max(math.sin(SLOPE) - friction * math.cos(SLOPE), 0.0) * end**2
    found, down = rig.run(), np.array([math.cos(SLOPE), 0.0, -math.sin(SLOPE)])
    place = np.array([found[f"cube.{axis}/position"] for axis in "xyz"])
    error = float(abs(down @ (place[:, -1] - place[:, 0]) - exact))

    def build() -> Callable[[], float]:
        drake = CubeInDrake(STEP, EDGE, SLOPE, friction)
        return lambda: abs(drake.way(end) - exact)

    return _beside_drake(rig, steps, f"the way of {exact:.4g} m", error, build, budget)


def quadruped(budget: Budget) -> Measurement:
    rig = rig_of(SOLO, ACCURATE_DROP, ACCURATE_END, STEP)
    exact = base_after(rig_of(SOLO, ACCURATE_DROP, ACCURATE_END, FINEST))

    def build() -> Callable[[], float]:
        drake = RobotInDrake(SOLO, STEP)
        return lambda: float(np.abs(drake.base(ACCURATE_DROP, ACCURATE_END) - exact).max())

    error, what = float(np.abs(base_after(rig) - exact).max()), f"the base after {ACCURATE_END} s"
    return _beside_drake(rig, round(ACCURATE_END / STEP), what, error, build, budget)


CASES = (
    *(
        BenchCase(
            f"contact drake cube {name}",
            f"a step of 1 ms of a cube on four corners that {name} on a slope of 0.5, friction {friction}: ticks alone",
            partial(cube, friction),
            "Drake, SAP with points of contact, AdvanceTo",
        )
        for name, friction in (("sticks", 0.55), ("slides", 0.45))
    ),
    BenchCase(
        "contact drake solo12",
        f"a step of 1 ms of {SOLO_12}, dropped from 5 cm: ticks alone",
        quadruped,
        "Drake, SAP with points of contact, implicit PD drives, AdvanceTo",
    ),
)
