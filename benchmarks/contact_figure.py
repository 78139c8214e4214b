"""`python -m benchmarks.contact_figure F.svg`: the picture of `docs/explanation/contact.md`, time against accuracy of a
quadruped that is dropped and lands, beside MuJoCo and, where it is installed, Drake."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.legged_robots import BASE, SOLO
from benchmarks.peers import MissingPeer, import_peer
from benchmarks.peers_drake import RobotInDrake
from benchmarks.rows_runs import loop_alone
from cosim import load_rig
from cosim.rig.rig import Rig

DROP, END, FINEST = 0.05, 0.4, 12.5e-6  # m, s, s
STEPS = np.array([4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4])  # s
REPETITIONS = 15


def _per_second(call: Callable[[], object]) -> float:
    """CPU time [s] per simulated second, the least of several."""
    found = []
    for _ in range(REPETITIONS):
        begun = time.process_time()
        call()
        found.append(time.process_time() - begun)
    return min(found) / END


def ours(step: float, stiffness: str) -> tuple[Rig, np.ndarray]:
    """(the rig, its base at the end)"""
    with tempfile.TemporaryDirectory() as folder:
        rig = load_rig(SOLO.rig(Path(folder), DROP, step, END, stiffness), interpret=False)
    run = rig.run()
    return rig, np.array([run[f"{BASE}.{axis}/position"][-1] for axis in "xyz"])


def of_ours(exact: np.ndarray) -> np.ndarray:
    """(steps, 2) error of the base [m], CPU time per second [s]"""
    rows = []
    for step in STEPS:
        rig, base = ours(step, "rigid")
        ticks = round(END / step) + 1
        rows.append((np.abs(base - exact).max(), _per_second(lambda rig=rig, ticks=ticks: loop_alone(rig, ticks))))
    return np.array(rows)


def of_mujoco(exact: np.ndarray, hard: bool) -> np.ndarray:
    """Like `of_ours`."""
    mujoco, rows = import_peer("mujoco"), []
    for step in STEPS:
        model, data = SOLO.mujoco(step, "IMPLICITFAST", "ELLIPTIC", hard)

        def fall(model=model, data=data, step=step) -> None:
            SOLO.place(model, data, DROP)
            mujoco.mj_step(model, data, nstep=round(END / step))

        fall()
        rows.append((np.abs(data.qpos[:3] - exact).max(), _per_second(fall)))
    return np.array(rows)


def of_drake(exact: np.ndarray) -> np.ndarray:
    """Like `of_ours`. Raises MissingPeer."""
    rows = []
    for step in STEPS:
        drake = RobotInDrake(SOLO, step)
        error = np.abs(drake.base(DROP, END) - exact).max()
        rows.append((error, _per_second(lambda drake=drake: drake.base(DROP, END))))
    return np.array(rows)


def main(file: Path) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    _, exact = ours(FINEST, "rigid")
    curves = {
        "cosim": of_ours(exact),
        "MuJoCo, contacts as hard as the step allows": of_mujoco(exact, True),
        "MuJoCo, its default contacts": of_mujoco(exact, False),
    }
    try:
        curves["Drake, its default contacts"] = of_drake(exact)
    except MissingPeer as missing:
        print(missing)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "contact", "font.size": 9}):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for (label, rows), marker in zip(curves.items(), "os^d", strict=False):
            axes.loglog(1e3 * rows[:, 1], rows[:, 0], f"{marker}-", label=label)
            for k in (0, len(STEPS) - 1):
                place = {"textcoords": "offset points", "xytext": (4, 5), "fontsize": 7}
                axes.annotate(f"{STEPS[k] * 1e3:g} ms", (1e3 * rows[k, 1], rows[k, 0]), **place)
        axes.set(xlabel="CPU time per simulated second [ms]", ylabel=f"error of the base after {END} s [m]")
        times = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
        axes.set_xticks(times, list(map(str, times)))
        axes.set_xticks([], minor=True)
        axes.set(xlim=(1, 3000), ylim=(2e-7, 1.0))
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left", fontsize=8)
        figure.savefig(file, metadata={"Date": None})
    for label, rows in curves.items():
        for step, (error, seconds) in zip(STEPS, rows, strict=True):
            print(f"{label}: {step * 1e3:g} ms, {error:.1e} m, {seconds * 1e3:.2f} ms per s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
