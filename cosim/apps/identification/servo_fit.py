"""The numbers of a servo and of the friction of its gears that are nearest to many short runs.

What is least is the mean absolute error of the simulated position over whole runs. It is found by iteratively
reweighted least squares (Lawson 1961; each error counts 1 / its size) with the steps of Levenberg and Marquardt.
Derivatives are differences of runs in SIMD lanes, and four dampings are tried together. The search begins with the
simplest law of friction, M1, from several starts, and adds terms up to M6, see `multibody.friction`. A part of the runs
is kept out of the fit and decides which law to take.

Numbers above 0 are searched as logarithms. Which of their combinations the runs leave open is read from the
derivatives, as directions along which the error changes by less than it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from cosim.apps.identification.servo_runs import ServoRun, ServoRuns, servo_joint
from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.rig.parameter_table import table_of
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import load_rig

BUDGET = 2000  # candidates, each of which simulates all runs
CHANGE = 4e-3  # of a variable, for derivatives
SMALLEST = 1e-3  # rad, below which errors count as in least squares
DAMPINGS = (0.1, 1.0, 10.0, 100.0)  # times the present one, which are tried together
ENOUGH = 3e-3  # relative decrease of the error …
PATIENCE = 3  # … which so many steps together must reach for the search to go on
FURTHEST = 1.0  # longest change of a variable in a step
LIMITS = 6.0  # of logarithms: a factor of 400 from where they begin
KEPT_OUT = 3  # every third run is kept out of the fit
SIMPLER = 1.03  # by how much the error of a simpler law may be larger
LOOSE = 0.5  # a combination is open if changing it by a factor e changes positions by less than this part of the error
LOST = 100.0  # rad: a run with a larger error counts as one without end
OF_ALL = 0.12  # part of the budget for the law that is taken, with all runs
SPREAD = 0.8  # of the variables of friction where a search begins again …
SCANNED = 40  # … at the best of so many candidates
# part of the budget of each law: what the first one finds, others hardly leave
SHARES = {"M1": 0.3, "M2": 0.1, "M4": 0.2, "M5": 0.3, "M6": 0.1}
# law -> where further searches begin, as factors of the best numbers so far
KICKS: dict[str, tuple[dict[str, float], ...]] = {
    "M1": (),
    "M2": (),
    "M4": (),
    "M5": ({"external_load_friction": 5.0, "load_friction": 0.2, "viscous": 0.3},),
    "M6": (),
}
# law -> the numbers of friction that it adds to the one before
LAWS: dict[str, tuple[str, ...]] = {
    "M1": ("viscous", "coulomb"),
    "M2": ("breakaway", "stribeck_speed", "stribeck_exponent"),
    "M4": ("both_load_friction", "both_static_load_friction"),
    "M5": ("external_load_friction", "static_external_load_friction", "load_friction", "static_load_friction"),
    "M6": ("quadratic_load_friction", "quadratic_external_load_friction"),
}
FRICTION = frozenset(name for names in LAWS.values() for name in names)
# where the search of a number begins that the rig has as 0, and shares of one number in two
FIRST = {
    "breakaway": 0.3, "stribeck_speed": 1.0, "stribeck_exponent": 1.3, "both_load_friction": 0.05,
    "both_static_load_friction": 0.05, "quadratic_load_friction": 1e-3, "quadratic_external_load_friction": 1e-3,
    "viscous": 0.01, "armature": 1e-3, "play": 0.01,
}  # fmt: skip
LOADS = ("load_friction", "external_load_friction", "static_load_friction", "static_external_load_friction")
QUADRATIC = ("quadratic_load_friction", "quadratic_external_load_friction")
OF_DRIVE = ("torque_constant", "resistance", "armature")
PLAY = "play"
OPTIONAL = ("gain", "max_speed", PLAY)
DELAY, ZERO = "delay", "zero"
EXPONENTS = (0.5, 4.0)  # with more, friction jumps at the Stribeck speed, which steps of 5 ms do not survive
UNIT = {DELAY: 0.01, ZERO: 0.02}  # s, rad, of a variable that is no logarithm


@dataclass(frozen=True)
class ServoNumbers:
    """Values by short names; those with M4 as `both_…`, and `breakaway`: F_s over F_c less 1."""

    values: dict[str, float]

    def rig_numbers(self, joint: str) -> dict[str, float]:
        """By their names in the rig."""
        v = self.values
        found = {f"joints.{joint}.actuator.{name}": v[name] for name in (*OF_DRIVE, *OPTIONAL, DELAY) if name in v}
        law = {name: v[name] for name in ("viscous", "coulomb", "stribeck_speed", "stribeck_exponent") if name in v}
        law["static"] = v["coulomb"] * (1.0 + v.get("breakaway", 0.0))
        for name in LOADS:
            of_both = "both_static_load_friction" if name.startswith("static") else "both_load_friction"
            law[name] = v.get(name, v.get(of_both, 0.0))
        law |= {name: v.get(name, 0.0) for name in QUADRATIC}
        return found | {f"joints.{joint}.friction.{name}": value for name, value in law.items()}


@dataclass(frozen=True)
class ServoStage:
    """A fit with one law: numbers, mean absolute errors of each run [rad], in and out of the fit, and combinations of
    numbers that the runs leave open."""

    law: str
    numbers: ServoNumbers
    errors: Array
    kept_out: Array  # bool (runs,)
    open: tuple[str, ...] = ()

    @property
    def fitted_error(self) -> float:
        return float(self.errors[~self.kept_out].mean())

    @property
    def other_error(self) -> float:
        """Of the runs that were kept out; of the others where none was."""
        return float(self.errors[self.kept_out].mean()) if self.kept_out.any() else self.fitted_error


@dataclass(frozen=True)
class ServoFit:
    """joint; stages: from the simplest law on; taken: the law of one of them, fitted to all runs; candidates:
    simulations of all runs; gain: of the rig, where it is not looked for."""

    joint: str
    stages: tuple[ServoStage, ...]
    taken: ServoStage
    candidates: int
    gain: float

    @property
    def products(self) -> dict[str, tuple[float, str]]:
        """What acts of torque constant, resistance and gain, with its unit: they are determined where single ones are
        not."""
        v = self.taken.numbers.values
        k, R = v["torque_constant"], v["resistance"]
        return {
            "torque_constant^2/resistance": (k**2 / R, "N*m*s/rad, damping by the back-EMF"),
            "gain*torque_constant/resistance": (
                v.get("gain", self.gain) * k / R,
                "N*m/rad/V, torque over the error at kp 1, by the supply",
            ),
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        yield "law   error in the fit   of runs kept out"
        for stage in self.stages:
            mark = "  taken" if stage.law == self.taken.law else ""
            yield f"{stage.law:4}  {stage.fitted_error:12.4g} rad  {stage.other_error:12.4g} rad{mark}"
        yield f"{self.taken.law} fitted to all runs: mean absolute error {self.taken.fitted_error:.4g} rad"
        for name, value in self.taken.numbers.rig_numbers(self.joint).items():
            yield f"  {name} {value:.5g}"
        for name, (value, unit) in self.products.items():
            yield f"  {name} {value:.5g} {unit}"
        if ZERO in self.taken.numbers.values:
            yield f"  zero of the recorded positions {self.taken.numbers.values[ZERO]:.4g} rad"
        for combination in self.taken.open:
            yield f"  not determined: {combination}"


@dataclass
class ServoSearch:
    """The search over runs; fitted: bool (runs,), those that count."""

    runs: ServoRuns
    fitted: Array
    budget: int = BUDGET
    candidates: int = field(default=0, init=False)

    def affords(self, names: Sequence[str]) -> bool:
        """Whether the budget has another step with so many variables, and the value after it."""
        return self.candidates + len(names) + len(DAMPINGS) + 2 <= self.budget

    # --- variables ---

    def at(self, start: dict[str, float], names: Sequence[str], x: Array) -> list[ServoNumbers]:
        """Numbers of variables (k, n) about a start."""
        found = []
        for row in x:
            changed = {
                name: start[name] + UNIT[name] * value
                if name in UNIT
                else start[name] * float(np.exp(np.clip(value, -LIMITS, LIMITS)))
                for name, value in zip(names, row, strict=True)
            }
            numbers = start | changed
            numbers[DELAY] = float(np.clip(numbers[DELAY], 0.0, self.longest_delay))
            if "stribeck_exponent" in numbers:
                numbers["stribeck_exponent"] = float(np.clip(numbers["stribeck_exponent"], *EXPONENTS))
            found.append(ServoNumbers(numbers))
        return found

    @cached_property
    def longest_delay(self) -> float:
        drive = self.runs.rig.spec.joints[self.runs.joint].actuator
        assert drive is not None
        longest = drive.params.longest_delay
        return drive.params.delay if longest is None else longest

    def errors(self, numbers: Sequence[ServoNumbers]) -> Array:
        """(k, runs, ticks) of the position [rad], 0 where nothing is recorded, infinite where a run is lost."""
        self.candidates += len(numbers)
        named = [of.rig_numbers(self.runs.joint) for of in numbers]
        values = {name: np.array([of[name] for of in named]) for name in named[0]}
        zero = np.array([of.values.get(ZERO, 0.0) for of in numbers])
        found = self.runs.positions(values, zero) - self.runs.recorded
        found = np.where(np.isfinite(self.runs.recorded), found, 0.0)
        return np.where(np.abs(found) < LOST, found, np.inf)

    def run_errors(self, errors: Array) -> Array:
        """(k, runs) mean absolute ones [rad]."""
        return np.sum(np.abs(errors) * self.runs.weight, axis=-1)

    def cost(self, errors: Array) -> Array:
        """(k,) mean absolute errors of the runs that count."""
        return self.run_errors(errors)[:, self.fitted].mean(axis=1)

    # --- steps ---

    def minimise(self, start: dict[str, float], names: Sequence[str]) -> tuple[float, ServoNumbers]:
        """The least cost near the start, and its numbers."""
        x, damping = np.zeros(len(names)), 1e-2
        costs: list[float] = []
        while self.affords(names):
            base, slope = self._derivatives(start, names, x)
            costs.append(float(self.cost(base[None])[0]))
            if len(costs) > PATIENCE and costs[-1] > (1.0 - ENOUGH) * costs[-1 - PATIENCE]:
                break
            weight = self.runs.weight[self.fitted] / np.maximum(np.abs(base[self.fitted]), SMALLEST)
            rows = (slope[:, self.fitted] * np.sqrt(weight)).reshape(len(names), -1)
            normal, gradient = rows @ rows.T, rows @ (base[self.fitted] * np.sqrt(weight)).ravel()
            scale = np.diag(normal) + 1e-9 * max(float(np.trace(normal)), 1e-300)
            tried = []
            for factor in DAMPINGS:
                step = np.linalg.solve(normal + damping * factor * np.diag(scale), -gradient)
                tried.append(x + step * min(1.0, FURTHEST / max(float(np.abs(step).max()), 1e-300)))
            found = self.cost(self.errors(self.at(start, names, np.array(tried))))
            best = int(np.argmin(found))
            if found[best] < costs[-1]:
                x, damping = tried[best], float(np.clip(damping * DAMPINGS[best], 1e-6, 1e6))
            else:
                damping *= DAMPINGS[-1] * 10.0
                if damping > 1e5:
                    break
        numbers = self.at(start, names, x[None])[0]
        return float(self.cost(self.errors([numbers]))[0]), numbers

    def best(
        self, start: dict[str, float], names: Sequence[str], kicks: Sequence[dict[str, float]], end: int
    ) -> ServoNumbers:
        """The best numbers of a search from the start, of others from the best so far with each of the kicks, and of
        others from where friction is otherwise, until `end` candidates were simulated.

        Where a joint sticks changes in jumps, which small steps do not see."""
        rng, first = np.random.default_rng(0), self.candidates
        self.budget = first + (end - first) // (2 + len(kicks))
        found = [self.minimise(start, names)]
        for number, kick in enumerate(kicks, 1):
            near = min(found, key=lambda pair: pair[0])[1].values
            self.budget = self.candidates + (end - self.candidates) // (2 + len(kicks) - number)
            found.append(self.minimise({name: value * kick.get(name, 1.0) for name, value in near.items()}, names))
        self.budget = end
        while self.candidates + SCANNED <= end and self.affords(names):
            near = min(found, key=lambda pair: pair[0])[1].values
            found.append(self.minimise(self._otherwise(rng, near, names), names))
        return min(found, key=lambda pair: pair[0])[1]

    def _otherwise(self, rng: np.random.Generator, near: dict[str, float], names: Sequence[str]) -> dict[str, float]:
        """The best of many numbers near some whose friction is another one."""
        movable = np.array([name in FRICTION for name in names])
        changes = SPREAD * rng.standard_normal((SCANNED, len(names))) * movable
        changes *= rng.random(changes.shape) < 0.5  # not all of them together
        tried = self.at(near, names, changes)
        return tried[int(np.argmin(self.cost(self.errors(tried))))].values

    def _derivatives(self, start: dict[str, float], names: Sequence[str], x: Array) -> tuple[Array, Array]:
        """Errors (runs, ticks) and their derivatives (n, runs, ticks)."""
        found = self.errors(self.at(start, names, np.vstack([x, x + CHANGE * np.eye(len(x))])))
        with np.errstate(invalid="ignore"):
            slope = (found[1:] - found[0]) / CHANGE
        return np.where(np.isfinite(found[0]), found[0], 10.0), np.where(np.isfinite(slope), slope, 0.0)

    def left_open(self, numbers: ServoNumbers, names: Sequence[str]) -> tuple[str, ...]:
        """Combinations along which the positions hardly change."""
        logarithms = [name for name in names if name not in UNIT]
        base, steps = self.errors([numbers])[0], CHANGE * np.eye(len(logarithms))
        below, above = (self.errors(self.at(numbers.values, logarithms, part)) for part in (-steps, steps))
        with np.errstate(invalid="ignore"):
            slope = (above - below) / (2.0 * CHANGE)  # central, as what cancels is small
        if not (np.isfinite(base).all() and np.isfinite(slope).all()):
            return ()
        rows = (slope[:, self.fitted] * np.sqrt(self.runs.weight[self.fitted])).reshape(len(logarithms), -1)
        error = np.sqrt(np.sum(base[self.fitted] ** 2 * self.runs.weight[self.fitted]))
        sizes, axes = np.linalg.eigh(rows @ rows.T)
        found = []
        for size, axis in zip(np.sqrt(np.maximum(sizes, 0.0)), axes.T, strict=True):
            if size < LOOSE * error:
                largest = np.abs(axis).max()
                parts = [
                    f"{name}^{power / largest:+.2g}"
                    for name, power in sorted(zip(logarithms, axis, strict=True), key=lambda pair: -abs(pair[1]))
                    if abs(power) > 0.3 * largest
                ]
                found.append(" · ".join(parts))
        return tuple(found)


def fitted_numbers(joint: str, optional: Sequence[str] = ()) -> tuple[str, ...]:
    """The numbers of the rig that a fit may change."""
    every = {name: 0.1 for names in LAWS.values() for name in names} | dict.fromkeys((*OF_DRIVE, DELAY, *optional), 0.1)
    return tuple(ServoNumbers(every).rig_numbers(joint))


def open_runs(
    path: Path, runs: Sequence[ServoRun], optional: Sequence[str] = (), overrides: Sequence[Override] = ()
) -> ServoRuns:
    """The runs of a rig for a fit. Raises InputError for a rig without a law of friction at its servo, or with one that
    has no static friction."""
    rig = load_rig(path, overrides)
    joint = servo_joint(rig)
    law = rig.spec.joints[joint].friction
    if law is None or law.model == "smooth":
        what = f"joints.{joint}.friction" + ("" if law is None else ".model")
        raise InputError(f"the friction of the gears is looked for; give {what}: stribeck", str(path))
    actuator = rig.spec.joints[joint].actuator
    if PLAY in optional and actuator is not None and actuator.params.gear_stiffness is None:
        raise InputError(f"rigid gears have no play; give joints.{joint}.actuator.gear_stiffness", f"--fit {PLAY}")
    static = [f"joints.{joint}.friction.static={law.coulomb!r}"] if law.static is None else []
    return ServoRuns(path, runs, fitted_numbers(joint, optional), [*overrides, *static])


def fit_servo(
    runs: ServoRuns,
    optional: Sequence[str] = (),
    laws: Sequence[str] = tuple(LAWS),
    budget: int = BUDGET,
    kept_out: Array | None = None,
    zero: bool = True,
) -> ServoFit:
    """Fit the laws, each from the one before, and once more to all runs the simplest one whose error of runs that are
    kept out is hardly larger than the least. optional: `gain`, `max_speed`; budget: most candidates; kept_out (runs,):
    which are kept out, by default every third one; zero: whether recorded positions may have a wrong zero."""
    others = np.arange(len(runs.runs)) % KEPT_OUT == KEPT_OUT - 1 if kept_out is None else kept_out
    search = ServoSearch(runs, ~others, budget)
    start, names = _start(search, optional, zero)
    stages: list[tuple[ServoStage, list[str]]] = []
    shares = np.cumsum([SHARES[law] for law in laws])
    for law, share in zip(laws, shares / shares[-1], strict=True):
        names = [*names, *LAWS[law]]
        if law == "M5":
            names = [of for of in names if not of.startswith("both_")]
            start |= {of: max(start[f"both_{of.replace('external_', '')}"], 1e-4) for of in LOADS}
        start |= {of: FIRST[of] for of in LAWS[law] if of not in start}
        spent = round((1.0 - OF_ALL) * budget * share) - _cost_of_stage(names)
        stages.append((_stage(search, law, search.best(start, names, KICKS[law], spent), names), names))
        start = dict(stages[-1][0].numbers.values)
    least = min(stage.other_error for stage, _ in stages)
    chosen, names = next(pair for pair in stages if pair[0].other_error <= SIMPLER * least)
    search.fitted = np.ones(len(others), dtype=bool)
    numbers = search.best(dict(chosen.numbers.values), names, (), budget - _cost_of_stage(names))
    taken = _stage(search, chosen.law, numbers, names)
    gain = float(table_of(runs.rig).per_run[f"joints.{runs.joint}.actuator.gain"].values[0])
    return ServoFit(runs.joint, tuple(stage for stage, _ in stages), taken, search.candidates, gain)


def _stage(search: ServoSearch, law: str, numbers: ServoNumbers, names: Sequence[str]) -> ServoStage:
    errors = search.run_errors(search.errors([numbers]))[0]
    return ServoStage(law, numbers, errors, ~search.fitted, search.left_open(numbers, names))


def _cost_of_stage(names: Sequence[str]) -> int:
    """Candidates."""
    return 2 * len(names) + 2


def _start(search: ServoSearch, optional: Sequence[str], zero: bool) -> tuple[dict[str, float], list[str]]:
    """The numbers of the rig, and the names of what every law searches."""
    spec = search.runs.rig.spec.joints[search.runs.joint]
    assert spec.actuator is not None and spec.friction is not None
    drive, law = spec.actuator.params, spec.friction
    start = {name: float(getattr(drive, name)) or FIRST.get(name, 0.0) for name in (*OF_DRIVE, *optional)}
    start |= {DELAY: float(drive.delay), "viscous": law.viscous or FIRST["viscous"], "coulomb": law.coulomb}
    late = [DELAY] if search.longest_delay > 0.0 else []
    return start | ({ZERO: 0.0} if zero else {}), [*OF_DRIVE, *optional, *late, *([ZERO] if zero else [])]
