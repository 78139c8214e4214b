"""Work against precision: a stiff arm by `rodas4` with steps of chosen length, against scipy's LSODA and Radau.

Both get the same compiled plant, and the loosest tolerance whose positions and velocities are within ERROR of a
reference at every tick. Efforts are held for a tick, as by a controller, or constant for the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from benchmarks import paired_timing
from benchmarks.paired_timing import Budget
from benchmarks.robots import rig_path
from benchmarks.rows import CPU_TIME, BenchCase, Measurement, NotMeasured, Target
from cosim import load_rig
from cosim.core.compile import ArrayPort, compile
from cosim.simulation.tick.tick_model import TickModel

STIFF_ARM = "rigs/bench/stiff_arm.yaml"
ERROR = 1e-7  # rad and rad/s
TICKS = 200
EFFORTS = np.array([20.0, -30.0, 15.0, 2.0, 1.0, 0.5])  # N·m
TOLERANCES = tuple(10.0 ** (-0.5 * k) for k in range(12, 21))  # from the loosest
PAIRS_OF_RADAU = 5  # runs that take 100 times as long

Motion = np.ndarray  # (ticks + 1, nx) states at the ticks, or more columns
Solver = Callable[[], Motion]


@dataclass(frozen=True)
class Problem:
    """A plant and the efforts (ticks, nv) requested of its drives. flow, jacobian: of (t, x), with the efforts that are
    `held` at present; truth: method and tolerance of the reference; relative: whether errors are relative to spans."""

    rig: str  # its file
    tick_model: TickModel
    efforts: np.ndarray
    held: np.ndarray
    flow: Callable[[float, np.ndarray], np.ndarray]
    jacobian: Callable[[float, np.ndarray], np.ndarray]
    truth: tuple[str, float]
    relative: bool = False

    @property
    def ticks(self) -> int:
        return len(self.efforts)

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
        return list(zip([0, *changes.tolist()], [*changes.tolist(), self.ticks], strict=True))

    def by_pieces(self, solve: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Motion:
        """solve(x, t (k + 1,)) gives the states (k + 1, nx) at the times t [s], x at the first of them."""
        motion = np.empty((self.ticks + 1, len(self.start)))
        motion[0] = self.start
        for first, last in self.pieces:
            self.held[:] = self.efforts[first]
            motion[first : last + 1] = solve(motion[first], np.arange(first, last + 1) * self.step)
        return motion

    @cached_property
    def reference(self) -> Motion:
        return scipy_method(self, *self.truth)()

    def error(self, motion: Motion) -> float:
        """The largest error of a position [rad] or velocity [rad/s] at a tick, or of its fraction of the span."""
        layout = self.tick_model.plant.layout
        moving = [*layout.index("position"), *layout.index("velocity")]
        span = np.ptp(self.reference[:, moving], axis=0) if self.relative else 1.0
        return float((np.abs(motion[:, moving] - self.reference[:, moving]) / span).max())


def problem_of(rig: str, efforts: np.ndarray, truth: tuple[str, float], relative: bool = False) -> Problem:
    """Of a rig's file."""
    tick_model = load_rig(rig_path(rig), ["schedule.integrator=rk4", "schedule.substeps=1"], False).tick_model
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

    return Problem(rig, tick_model, efforts, held, rate, jacobian, truth, relative)


@cache
def stiff_arm(sampled: bool, ticks: int = TICKS) -> Problem:
    """sampled: efforts that change at every tick, as a sine of 1 Hz."""
    at = np.sin(2.0 * np.pi * 1e-3 * np.arange(ticks)) if sampled else np.ones(ticks)
    return problem_of(STIFF_ARM, at[:, None] * EFFORTS, ("DOP853", 1e-12))


def scipy_method(of: Problem, method: str, tolerance: float) -> Solver:
    """A method of `solve_ivp`, or LSODA by `odeint`, which costs less per call."""
    from scipy.integrate import odeint, solve_ivp

    def by_odeint(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        return odeint(of.flow, x, t, tfirst=True, rtol=tolerance, atol=tolerance, mxstep=100_000)

    def by_solve_ivp(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        given: dict[str, Any] = {"jac": of.jacobian} if method == "Radau" else {}
        return solve_ivp(of.flow, t[[0, -1]], x, method, t, rtol=tolerance, atol=tolerance, **given).y.T

    return partial(of.by_pieces, by_odeint if method == "LSODA" else by_solve_ivp)


def ours(of: Problem, *settings: str) -> Solver:
    """The step of a tick, for all ticks; settings: of the rig's schedule."""
    rig = load_rig(rig_path(of.rig), [f"schedule.{setting}" for setting in settings], interpret=False)
    tick_model = rig.tick_model
    ports = [ArrayPort("t", ()), ArrayPort("x", (tick_model.nx,)), ArrayPort("request", (tick_model.nv,))]
    advance = compile(tick_model.advance, ports, "advance", interpret=False).native
    start = tick_model.plant.layout.pack(tick_model.plant.initial())
    times = [np.array(k * tick_model.step) for k in range(of.ticks)]

    def solve() -> Motion:
        motion = np.empty((of.ticks + 1, len(start)))
        motion[0] = start
        for k, (t, effort) in enumerate(zip(times, of.efforts, strict=True)):
            advance(t, motion[k], effort, out=motion[k + 1])
        return motion

    return solve


def with_tolerance(of: Problem, tolerance: float) -> Solver:
    return ours(of, f"tolerance={tolerance}")


def loosest(of: Problem, make: Callable[[float], Solver], tolerances: Sequence[float], bound: float) -> Solver:
    """The solver with the first tolerance that keeps the bound of the error. Raises NotMeasured if there is none."""
    for tolerance in tolerances:
        solver = make(tolerance)
        if of.error(solver()) <= bound:
            return solver
    raise NotMeasured(f"no tolerance keeps an error of {bound:.0e}")


def timed(of: Problem, mine: Solver, other: Solver, budget: Budget) -> paired_timing.Samples:
    """CPU time of both per simulated second."""

    def repeated(solver: Solver) -> paired_timing.RepeatedCall:
        def block(n: int) -> None:
            for _ in range(n):
                solver()

        return block

    simulated = of.ticks * of.step
    return paired_timing.time_pairs(repeated(mine), repeated(other), budget, CPU_TIME).per(simulated, simulated)


def stiff(method: str, sampled: bool, budget: Budget) -> Measurement:
    of = stiff_arm(sampled, budget.of(TICKS))
    makers = partial(with_tolerance, of), partial(scipy_method, of, method)
    mine, other = (loosest(of, make, TOLERANCES, ERROR) for make in makers)
    if method == "Radau":
        budget = replace(budget, pairs=min(budget.pairs, PAIRS_OF_RADAU))
    errors = of.error(mine()), of.error(other())
    note = f"largest errors {errors[0]:.0e} here, {errors[1]:.0e} there"
    return Measurement(timed(of, mine, other, budget), note=note)


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
