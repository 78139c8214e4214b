"""Work against precision: a stiff arm by `rodas4` with steps of chosen length, against scipy's LSODA and Radau.

Both get the same compiled plant, and the loosest tolerance whose positions and velocities are within ERROR of a
reference at every tick. Efforts are held for a tick, as by a controller, or constant for the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from cosim import load_rig
from cosim.bench import paired_timing
from cosim.bench.paired_timing import Budget
from cosim.bench.robots import rig_path
from cosim.bench.rows import CPU_TIME, BenchCase, Measurement, NotMeasured, Target
from cosim.compile import ArrayPort, compile
from cosim.tick.tick_model import TickModel

STIFF_ARM = "rigs/bench/stiff_arm.yaml"
ERROR = 1e-7  # rad and rad/s
TICKS = 200
EFFORTS = np.array([20.0, -30.0, 15.0, 2.0, 1.0, 0.5])  # N·m
TOLERANCES = tuple(10.0 ** (-0.5 * k) for k in range(12, 21))  # from the loosest
PAIRS_OF_RADAU = 5  # runs that take 100 times as long

Motion = np.ndarray  # (TICKS + 1, nx) states at the ticks, or more columns
Solver = Callable[[], Motion]


@dataclass(frozen=True)
class Problem:
    """flow, jacobian: of (t, x), with the efforts `held` at present; efforts: (TICKS, nv)."""

    tick_model: TickModel
    efforts: np.ndarray
    held: np.ndarray
    flow: Callable[[float, np.ndarray], np.ndarray]
    jacobian: Callable[[float, np.ndarray], np.ndarray]

    @property
    def start(self) -> np.ndarray:
        return self.tick_model.plant.layout.pack(self.tick_model.plant.initial())

    @property
    def step(self) -> float:
        return self.tick_model.step

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """(first, last) ticks of the intervals with constant efforts."""
        changes = np.flatnonzero(np.any(np.diff(self.efforts, axis=0) != 0.0, axis=1)) + 1
        return list(zip([0, *changes.tolist()], [*changes.tolist(), TICKS], strict=True))

    def by_pieces(self, solve: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Motion:
        """solve(x, t (k + 1,)) gives the states (k + 1, nx) at the times t [s], x at the first of them."""
        motion = np.empty((TICKS + 1, len(self.start)))
        motion[0] = self.start
        for first, last in self.pieces:
            self.held[:] = self.efforts[first]
            motion[first : last + 1] = solve(motion[first], np.arange(first, last + 1) * self.step)
        return motion

    def error(self, motion: Motion) -> float:
        """The largest error of a position [rad] or velocity [rad/s] at a tick."""
        layout = self.tick_model.plant.layout
        moving = [*layout.index("position"), *layout.index("velocity")]
        return float(np.abs(motion[:, moving] - reference(self.sampled)[:, moving]).max())

    @property
    def sampled(self) -> bool:
        return len(self.pieces) > 1


@cache
def problem(sampled: bool) -> Problem:
    """sampled: efforts that change at every tick, as a sine of 1 Hz."""
    tick_model = load_rig(rig_path(STIFF_ARM), ["schedule.integrator=rk4", "schedule.substeps=1"], False).tick_model
    nx, nv = tick_model.nx, tick_model.nv
    t, x, request = ArrayPort("t", ()), ArrayPort("x", (nx,)), ArrayPort("request", (nv,))
    integration = tick_model.integration
    flow = compile(integration.flow, [t, x, request], "flow", interpret=False).native
    slope = compile(
        lambda tx, request: integration.slope(tx, request, integration.flow(tx[0], tx[1:], request)),
        [ArrayPort("tx", (1 + nx,)), request],
        "slope",
        interpret=False,
    ).native
    held, now, both = np.zeros(nv), np.zeros(()), np.empty(1 + nx)

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        now[...] = t
        return flow(now, x, held, out=np.empty(nx))

    def jacobian(t: float, x: np.ndarray) -> np.ndarray:
        both[0], both[1:] = t, x
        return slope(both, held, out=np.empty((nx, 1 + nx)))[:, 1:]

    at = np.sin(2.0 * np.pi * np.arange(TICKS) * tick_model.step) if sampled else np.ones(TICKS)
    return Problem(tick_model, at[:, None] * EFFORTS, held, rate, jacobian)


def scipy_method(of: Problem, method: str, tolerance: float) -> Solver:
    """A method of `solve_ivp`, or LSODA by `odeint`, which costs less per call."""
    from scipy.integrate import odeint, solve_ivp

    def by_odeint(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        return odeint(of.flow, x, t, tfirst=True, rtol=tolerance, atol=tolerance, mxstep=100_000)

    def by_solve_ivp(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        given: dict[str, Any] = {"jac": of.jacobian} if method == "Radau" else {}
        return solve_ivp(of.flow, t[[0, -1]], x, method, t, rtol=tolerance, atol=tolerance, **given).y.T

    return partial(of.by_pieces, by_odeint if method == "LSODA" else by_solve_ivp)


@cache
def reference(sampled: bool) -> Motion:
    """By DOP853 of scipy."""
    return scipy_method(problem(sampled), "DOP853", 1e-12)()


def ours(of: Problem, tolerance: float) -> Solver:
    """The step of a tick, for all ticks."""
    rig = load_rig(rig_path(STIFF_ARM), [f"schedule.tolerance={tolerance}"], interpret=False)
    tick_model = rig.tick_model
    ports = [ArrayPort("t", ()), ArrayPort("x", (tick_model.nx,)), ArrayPort("request", (tick_model.nv,))]
    advance = compile(tick_model.advance, ports, "advance", interpret=False).native
    start = tick_model.plant.layout.pack(tick_model.plant.initial())
    times = [np.array(k * tick_model.step) for k in range(TICKS)]

    def solve() -> Motion:
        motion = np.empty((TICKS + 1, len(start)))
        motion[0] = start
        for k, (t, effort) in enumerate(zip(times, of.efforts, strict=True)):
            advance(t, motion[k], effort, out=motion[k + 1])
        return motion

    return solve


def precise(of: Problem, solvers: Iterable[Callable[[float], Solver]]) -> list[tuple[Solver, float]]:
    """Each method with the loosest tolerance that keeps ERROR, and its error. Raises NotMeasured if there is none."""
    found = []
    for make in solvers:
        for tolerance in TOLERANCES:
            solver = make(tolerance)
            error = of.error(solver())
            if error <= ERROR:
                found.append((solver, error))
                break
        else:
            raise NotMeasured(f"no tolerance keeps an error of {ERROR:g}")
    return found


def stiff(method: str, sampled: bool, budget: Budget) -> Measurement:
    of = problem(sampled)
    (mine, error), (other, other_error) = precise(of, (partial(ours, of), partial(scipy_method, of, method)))
    if method == "Radau":
        budget = replace(budget, pairs=min(budget.pairs, PAIRS_OF_RADAU))

    def repeated(solver: Solver) -> paired_timing.RepeatedCall:
        def block(n: int) -> None:
            for _ in range(n):
                solver()

        return block

    simulated = TICKS * of.step
    samples = paired_timing.time_pairs(repeated(mine), repeated(other), budget, CPU_TIME).per(simulated, simulated)
    return Measurement(samples, note=f"largest errors {error:.0e} here, {other_error:.0e} there")


WHAT = f"UR5 behind elastic gears, per simulated second at an error of {ERROR:g}: rodas4, substeps: auto"
CASES = tuple(
    BenchCase(
        f"stiff_arm {method.lower()} {'sampled' if sampled else 'constant'}",
        f"{WHAT}; efforts {'change at each tick of 1 ms' if sampled else 'constant'}",
        partial(stiff, method, sampled),
        f"scipy's {method} with the same compiled plant",
        "ms",
        target,
    )
    for method, sampled, target in (
        ("LSODA", True, Target("ratio", 4.0)),
        ("LSODA", False, None),
        ("Radau", True, None),
    )
)
