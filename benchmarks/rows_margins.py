"""Margins of gains that were tuned in simulation, measured on emulated drives of an arm that differs from its model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import yaml

from benchmarks.emulated_rigs import free_channels, set_options
from benchmarks.emulation import subprocess_ready
from benchmarks.paired_timing import Budget, Samples
from benchmarks.robots import rig_path
from benchmarks.rows import BenchCase, Measurement, NotMeasured, Target
from cosim.apps.tuning.hardware import HardwareReplay
from cosim.apps.tuning.hardware_trials import HardwareTrials
from cosim.apps.tuning.tune import tune
from cosim.core.errors import RunError
from cosim.core.units import parse_any
from cosim.rig.rig import load_rig

PLANT_FACTOR = 1.2  # times the masses, inertias and frictions of the model
GAINS = {"arm.kp": "x1.5..x3", "arm.kd": "x1.5..x3"}
PLANTS = {"inertia": "20 %", "friction": "20 %"}
LIMITS = {"disk_margin": 0.9, "phase_margin": "52 deg", "gain_margin": 3.0}
TRIALS, STEP = 24, 1.8  # of a gain between two runs
MOTION = [  # short, of an arm that stays where it is between two runs
    "controllers.0.trajectory.duration=0.3 s",
    "controllers.0.trajectory.delay=0.1 s",
    "controllers.0.trajectory.goal=[15 deg, -50 deg, 65 deg]",
    "mechanism.gravity=[0, 0, 0]",
    "schedule.duration=0.8 s",
    "guard={stale: 0.5}",
]


def tuned_margins(budget: Budget) -> Measurement:
    """Of each limit and loop: the margin as measured, and the limit that the session had."""
    bus = [
        f"drivers.0.bus.channel={free_channels('udp_multicast', 1)[0]}",
        "drivers.0.watchdog=2",
    ]
    with TemporaryDirectory() as folder, _heavier_arm(bus):
        session = tune(
            load_rig(rig_path("rigs/arm_sim.yaml"), MOTION, interpret=False),
            GAINS,
            plants=PLANTS,
            limits=LIMITS,
            trials=budget.of(TRIALS),
            folder=Path(folder) / "session",
        )
        real = load_rig(rig_path("rigs/arm_can.yaml"), [*MOTION, *bus], interpret=False)
        replay = HardwareReplay(session, real, lambda lines: None, lambda text: None, STEP)
        failed = ""
        try:
            replay.try_all(HardwareTrials(real, (), 1, STEP).candidates(session))
        except RunError as error:
            failed = error.what
    limits = {limit.measure.figure: limit.bound for limit in session.evaluator.objective.limits}
    pairs = np.array(
        [(value, limits[figure]) for loop in replay.margins for figure, value in loop.measured.items()], dtype=float
    )
    if not len(pairs):
        raise NotMeasured(f"no loop was measured: {failed}")
    smallest = pairs[np.argmin(pairs[:, 0] / pairs[:, 1])]
    note = f"{len(replay.runs)} runs, {len(replay.margins)} loops measured; the smallest of {len(pairs)} margins"
    return Measurement(Samples(*smallest[:, None]), note=note, growth=True, failed=failed)


@contextmanager
def _heavier_arm(bus: list[str]) -> Iterator[None]:
    """The drives of `arm_can` in another process."""
    path = rig_path("rigs/arm_can.yaml")
    data = yaml.safe_load(path.read_text())
    actuator = data["joints"]["all"]["actuator"]
    keys = [
        f"joints.all.actuator.{name}={PLANT_FACTOR * parse_any(str(actuator[name]))}"
        for name in ("viscous", "rotor_inertia")
    ]
    for body in data["mechanism"]["bodies"]:
        place = f"mechanism.bodies.{body['name']}"
        keys.append(f"{place}.mass={PLANT_FACTOR * parse_any(body['mass'])}")
        keys.append(f"{place}.inertia={[PLANT_FACTOR * value for value in body['inertia']]}")
    with subprocess_ready(["-m", "cosim", "emulate", str(path), *set_options([*MOTION, *bus, *keys])]):
        yield


CASES = (
    BenchCase(
        "tuning margins",
        f"arm_can with {PLANT_FACTOR - 1.0:.0%} more mass, inertia and friction than its model: the smallest measured"
        " margin",
        tuned_margins,
        "the limit that it was tuned with",
        unit="1",
        target=Target("ratio", 1.0),
    ),
)
