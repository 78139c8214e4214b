"""Full servo drives with elastic stages, backlash and bristle friction: real time, work against precision, assembly.

Errors are in position and velocity of the load at the ticks, relative to their spans, against Radau of scipy with
a tight tolerance. Efforts change at every tick, as by a controller.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from benchmarks.paired_timing import Budget, Samples, undisturbed
from benchmarks.robots import rig_path
from benchmarks.rows import BenchCase, Measurement, Target
from benchmarks.rows_compile import first_run
from benchmarks.rows_precision import PAIRS_OF_RADAU, Problem, loosest, ours, problem_of, scipy_method, timed
from benchmarks.rows_runs import loop_alone
from cosim import Rig, load_rig
from cosim.mechanics.bondgraph import BondGraph, C, I, R, Se, assemble

ONE, SIX = "rigs/bench/full_drive.yaml", "rigs/drives/industrial_arm.yaml"
EXCAVATOR = "rigs/drives/excavator.yaml"
WRONG = 0.01  # largest error, relative
SIMULATED = 10  # s
TICKS = 400
ELEMENTS = 1000
RADAU = tuple(10.0 ** (-0.5 * k) for k in range(2, 15))  # tolerances from the loosest


@cache
def one_drive(ticks: int = TICKS) -> Problem:
    """Efforts that turn the load, stop it and turn it back."""
    t = 1e-3 * np.arange(ticks)
    efforts = 8.0 * np.sin(2.0 * np.pi * 4.0 * t) + np.where(t > 0.2, 3.0, 0.0)
    return problem_of(ONE, efforts[:, None], ("Radau", 1e-8), relative=True)


def real_time(rig: Rig, budget: Budget) -> Samples:
    """CPU time of whole ticks against the time that they simulate, both in s per simulated second."""
    seconds = budget.of(SIMULATED)
    ticks, found = round(seconds / rig.tick_model.step), []
    loop_alone(rig, ticks)
    with undisturbed():
        for _ in range(max(budget.of(5), budget.pairs // 10)):
            begun = time.thread_time()
            loop_alone(rig, ticks)
            found.append(time.thread_time() - begun)
    return Samples(np.array(found) / seconds, np.ones(len(found)))


def one_in_real_time(budget: Budget) -> Measurement:
    of = one_drive(budget.of(TICKS))
    error = of.error(ours(of)())
    failed = f"the error is above {WRONG:.0%}" if error > WRONG else ""
    return Measurement(
        real_time(load_rig(rig_path(ONE), interpret=False), budget),
        note=f"error {error:.1e} of the span",
        failed=failed,
    )


def in_real_time(path: str, budget: Budget) -> Measurement:
    return Measurement(real_time(load_rig(rig_path(path), interpret=False), budget))


def precision(settings: Sequence[str], budget: Budget) -> Measurement:
    """Against the loosest Radau that is as exact."""
    of = one_drive(budget.of(TICKS))
    mine = ours(of, *settings)
    error = of.error(mine())
    other = loosest(of, partial(scipy_method, of, "Radau"), RADAU, error)
    note = f"largest errors {error:.0e} here, {of.error(other()):.0e} there"
    return Measurement(timed(of, mine, other, replace(budget, pairs=min(budget.pairs, PAIRS_OF_RADAU))), note=note)


def chain_of_masses(elements: int) -> BondGraph:
    """Masses on springs with dampers in a row, pulled at its end."""
    graph = BondGraph()
    graph.add("pull", Se("translational", 1.0))
    graph.junction("mass_0", "1")
    graph.add("inertia_0", I("translational", 1.0))
    graph.bond("pull", "mass_0")
    graph.bond("mass_0", "inertia_0")
    for k in range(1, elements // 3):
        for name, kind in ((f"between_{k}", "0"), (f"stretch_{k}", "1"), (f"mass_{k}", "1")):
            graph.junction(name, kind)
        graph.add(f"spring_{k}", C("translational", 100.0))
        graph.add(f"damper_{k}", R("translational", 0.5))
        graph.add(f"inertia_{k}", I("translational", 1.0))
        graph.chain(f"mass_{k - 1}", f"between_{k}", f"mass_{k}", f"inertia_{k}")
        graph.chain(f"between_{k}", f"stretch_{k}", f"spring_{k}")
        graph.bond(f"stretch_{k}", f"damper_{k}")
    return graph


def assembly(budget: Budget) -> Measurement:
    found = []
    for _ in range(max(budget.of(3), budget.starts)):
        graph, begun = chain_of_masses(ELEMENTS), time.process_time()
        assemble(graph)
        found.append(time.process_time() - begun)
    return Measurement(Samples(np.array(found)))


def _six() -> str:
    """The rig with absolute paths."""
    path = rig_path(SIX)
    return path.read_text().replace("../robots", str(path.parent.parent.resolve() / "robots"))


METHODS: dict[str, Sequence[str]] = {
    "multirate, 1 substep": ("substeps=1",),
    "multirate, 4 substeps": ("substeps=4",),
    "multirate, 16 substeps": ("substeps=16",),
    "rosenbrock, 16 substeps": ("integrator=rosenbrock", "substeps=16"),
    "rodas4, tolerance 1e-3": ("integrator=rodas4", "substeps=auto", "tolerance=1e-3"),
    "rodas4, tolerance 1e-5": ("integrator=rodas4", "substeps=auto", "tolerance=1e-5"),
    "rk4, 128 substeps": ("integrator=rk4", "substeps=128"),
}


CASES = (
    BenchCase(
        "drive in real time",
        "a drive with two elastic stages, backlash and bristle friction, whole ticks of 1 ms, per simulated second",
        one_in_real_time,
        "real time",
        "ms",
        Target("ratio", 500.0),
    ),
    BenchCase(
        "six drives in real time",
        "an arm with six such drives, whole ticks of 1 ms, per simulated second",
        partial(in_real_time, SIX),
        "real time",
        "ms",
        Target("ratio", 150.0),
    ),
    BenchCase(
        "excavator in real time",
        "an excavator arm of three cylinders on one pump with load sensing, whole ticks of 5 ms, per simulated second",
        partial(in_real_time, EXCAVATOR),
        "real time",
        "ms",
        Target("ratio", 200.0),
    ),
    *(
        BenchCase(
            f"drive {name}",
            f"the full drive with efforts that change at 1 kHz, per simulated second: {name}",
            partial(precision, settings),
            "Radau of scipy with the same compiled plant, at most the same error",
            "ms",
        )
        for name, settings in METHODS.items()
    ),
    BenchCase(
        "bond graph assembly",
        f"assembly of a bond graph of {ELEMENTS} elements",
        assembly,
        unit="s",
        target=Target("ours", 5.0, at_most=True),
    ),
    BenchCase(
        "first run six drives",
        "the arm with six full drives: first run of 0.2 s",
        partial(first_run, _six),
        unit="s",
        target=Target("ours", 5.0, at_most=True),
    ),
)
