"""First runs of rigs with much code, in new processes with empty caches: closed loops, a humanoid that floats."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

from benchmarks.paired_timing import Budget, Samples
from benchmarks.peers import robot_file
from benchmarks.robots import TALOS, load_robot
from benchmarks.rows import BenchCase, Measurement, Target
from benchmarks.rows_start import fresh

RUN = "from cosim import load_rig", "rig = load_rig(sys.argv[2])", "rig.run(0.2)"
FEW, MANY, LONG, DRIVES = 10, 40, 1000, 32
DRIVE = (
    "{type: dc_motor, resistance: 0.45 ohm, inductance: 0.9 mH, torque_constant: 0.125 N*m/A,"
    " rotor_inertia: 0.35 kg*cm^2, voltage_limit: 48 V, current_limit: 60 A, ratio: 101, viscous: 2.2,"
    " coulomb: 3.5 N*m, bandwidth: 100 Hz}"
)
CONTROLLER = (
    "type: computed_torque, bandwidth: 5 Hz, trajectory: {type: sine, amplitude: 0.02, frequency: 0.5 Hz, ramp: 1 s}"
)


def rod(name: str, parent: str, x: float, length: float) -> str:
    """A slender rod of 1 kg/m along x that turns about z."""
    inertia, place = length**3 / 12.0, f"parent: {parent}, origin: {{xyz: [{x}, 0, 0]}}"
    return f"{{name: {name}, {place}, mass: {length}, com: [{0.5 * length}, 0, 0], inertia: [0, {inertia}, {inertia}]}}"


def pin(k: int, parent: str, here: float, child: str, there: float) -> str:
    places = f"origin: {{xyz: [{here}, 0, 0]}}, child_origin: {{xyz: [{there}, 0, 0]}}"
    return f"{{name: pin{k}, parent: {parent}, child: {child}, {places}}}"


def apart(n: int) -> str:
    """n four-bar linkages that share nothing."""
    bodies, loops, joints = [], [], []
    for k in range(n):
        crank, coupler, rocker = (f"{name}{k}" for name in ("crank", "coupler", "rocker"))
        bodies += [rod(crank, "base", k, 0.2), rod(coupler, crank, 0.2, 0.5), rod(rocker, "base", k + 0.6, 0.4)]
        loops.append(pin(k, rocker, 0.4, coupler, 0.5))
        joints += [f"{crank}: {{initial: {{position: 0.5, velocity: 2}}}}"]
        joints += [f"{coupler}: {{initial: {{guess: 0.5}}}}", f"{rocker}: {{initial: {{guess: 2.0}}}}"]
    return linkages(bodies, loops, joints)


def in_a_row(n: int) -> str:
    """n four-bar linkages, each of which shares an upright with the next."""
    bodies, loops = [rod("up0", "base", 0, 1.0)], []
    joints = ["up0: {initial: {position: 0.7, velocity: -1}}"]
    for k in range(n):
        bodies += [rod(f"across{k}", f"up{k}", 1.0, 1.0), rod(f"up{k + 1}", "base", k + 1, 1.0)]
        loops.append(pin(k, f"up{k + 1}", 1.0, f"across{k}", 1.0))
        joints += [f"across{k}: {{initial: {{guess: -0.7}}}}", f"up{k + 1}: {{initial: {{guess: 0.7}}}}"]
    return linkages(bodies, loops, joints)


def linkages(bodies: list[str], loops: list[str], joints: list[str]) -> str:
    lists = (
        f"\n  {name}:\n" + "\n".join(f"    - {item}" for item in items)
        for name, items in (("bodies", bodies), ("loops", loops))
    )
    return f"mechanism:\n  gravity: [0, -9.81, 0]{''.join(lists)}\njoints:\n" + _indented(joints)


def chain(n: int) -> str:
    """n rods in a row, with a drive in each joint and one controller."""
    rod = "origin: {xyz: [0.1, 0, 0]}, axis: [0, 0.6, 0.8], mass: 0.1, com: [0.05, 0, 0], inertia: [1e-5, 8e-5, 8e-5]"
    bodies = f"  bodies:\n    - {{name: rod, joint: hinge, repeat: {n}, {rod}}}\n"
    drives = _indented([f"all: {{actuator: {DRIVE}}}"])
    controllers = f"controllers:\n  - {{name: posture, {CONTROLLER}}}\n"
    return f"mechanism:\n  gravity: [0, 0, 0]\n{bodies}joints:\n{drives}{controllers}"


def humanoid(count: int) -> str:
    """TALOS on a floating base with a drive in so many joints, of 32. Raises MissingPeer."""
    names = load_robot(TALOS).model.dof_names[:count]
    drives = _indented([f"{name}: {{actuator: {DRIVE}}}" for name in names])
    controller = f"  - {{name: posture, joints: [{', '.join(names)}], {CONTROLLER}}}\n"
    guard = "guard: {actions: {position: warn, velocity: warn, effort: warn}}\n"
    mechanism = f"mechanism: {{urdf: {robot_file(TALOS)}, floating_base: true}}\n"
    return f"{mechanism}joints:\n{drives}controllers:\n{controller}{guard}"


def _indented(lines: list[str]) -> str:
    return "".join(f"  {line}\n" for line in lines)


@cache
def first_runs(make: Callable[[], str], count: int) -> np.ndarray:
    """Seconds from the start of Python to the end of the run of a rig, with an empty cache each time; (count,)."""
    found = []
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            rig = Path(folder, "rig.yaml")
            rig.write_text(make())
            found.append(fresh(RUN, rig, Path(folder, "cache")).sum())
    return np.array(found)


def first_run(make: Callable[[], str], budget: Budget) -> Measurement:
    return Measurement(Samples(first_runs(make, budget.starts)))


def first_run_of(make: Callable[[int], str], n: int, budget: Budget) -> Measurement:
    """Of a rig of n linkages, rods or drives."""
    return first_run(partial(make, budget.of(n)), budget)


def growth(make: Callable[[int], str], budget: Budget) -> Measurement:
    """Per linkage, of many against few."""
    many, few = (first_runs(partial(make, n), budget.starts) / n for n in (budget.of(MANY), budget.of(FEW)))
    return Measurement(Samples(many, few), growth=True)


CASES = (
    BenchCase(
        "first run linkages",
        f"{MANY} four-bar linkages apart: first run of 0.2 s",
        partial(first_run_of, apart, MANY),
        unit="s",
        target=Target("ours", 5.0, at_most=True),
    ),
    BenchCase(
        "first run linkages in a row",
        f"{MANY} four-bar linkages in a row: first run of 0.2 s, per linkage",
        partial(growth, in_a_row),
        f"{FEW} of them, per linkage",
        "s",
    ),
    BenchCase(
        "first run humanoid",
        f"TALOS with {DRIVES} drives, floating base: first run of 0.2 s",
        partial(first_run_of, humanoid, DRIVES),
        unit="s",
        target=Target("ours", 3.0, at_most=True),
    ),
    BenchCase(
        "first run chain",
        f"{LONG} joints in a row with drives and a controller: first run of 0.2 s",
        partial(first_run_of, chain, LONG),
        unit="s",
        target=Target("ours", 12.0, at_most=True),
    ),
)
