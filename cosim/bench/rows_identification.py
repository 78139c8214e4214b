"""Identification of the drives of an arm from one recording, beside MuJoCo's toolbox for system identification."""

from __future__ import annotations

import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from cosim import Rig, load_rig
from cosim.bench.paired_timing import Budget, Samples
from cosim.bench.peers import MissingPeer, import_peer
from cosim.bench.robots import sample_rig
from cosim.bench.rows import BenchCase, Measurement, Target
from cosim.identification.equation_error import sources_of
from cosim.identification.excitation import excite
from cosim.identification.identification import identify
from cosim.identification.recorded_motion import read_motion, samples_of
from cosim.identification.results import FoundNumber
from cosim.identification.variables import choose
from cosim.rig.reading.overlay import overlay_text, read_overlay

SECONDS = 60.0
FIT = ("friction", "rotor_inertia", "torque_constant")
# kinds of numbers of a drive -> what it is in MuJoCo
NUMBERS = ("viscous", "coulomb", "rotor_inertia", "torque_constant")
POSITION_NOISE, CURRENT_NOISE = 2e-5, 0.02  # rad, A
CHUNK = 500  # ticks of a run of the peer; longer ones drift away
MOST_STEPS = 5  # of the peer; more change nothing
CLOSE = 3.0  # intervals within which both must find the same


@dataclass(frozen=True)
class Recorded:
    """The rig, a noisy recording of one with other drives, and the numbers of these."""

    rig: Rig
    path: Path
    truth: Mapping[str, float]


def record(folder: Path) -> Recorded:
    path, rng = sample_rig(), np.random.default_rng(1)
    rig = load_rig(path, interpret=False)
    motion = excite(rig, choose(rig, FIT), SECONDS)
    (folder / "motion.csv").write_text(motion.table())
    truth = {
        f"joints.{name}.actuator.{what}": float(getattr(_drive(rig, name), what)) * rng.uniform(0.75, 1.25)
        for name in rig.joints
        for what in NUMBERS
    }
    keys: dict[str, Any] = {}
    joints = rig.spec.source.data["joints"]
    for name in rig.joints:
        own = (joints.get(name) or {}).get("actuator") or joints["all"]["actuator"]
        keys[f"joints.{name}.actuator"] = own | {what: truth[f"joints.{name}.actuator.{what}"] for what in NUMBERS}
    (controller,) = rig.tick_model.loops
    keys[f"controllers.{controller.name}.trajectory"] = {"type": "waypoints", "file": str(folder / "motion.csv")}
    (folder / "truth.yaml").write_text(overlay_text(keys, str(path)))
    run = load_rig(path, read_overlay(folder / "truth.yaml"), interpret=False).run(duration=SECONDS)
    table = {"t": np.asarray(run.t)}
    for name in rig.joints:
        for what, noise in (("position", POSITION_NOISE), ("current", CURRENT_NOISE)):
            table[f"{name}/{what}"] = run[f"{name}/{what}"] + rng.normal(size=len(run.t)) * noise
    data = np.column_stack(list(table.values()))
    np.savetxt(folder / "recording.csv", data, delimiter=",", header=",".join(table), comments="")
    return Recorded(rig, folder / "recording.csv", truth)


def _drive(rig: Rig, name: str) -> Any:
    plugin = rig.spec.joints[name].actuator
    assert plugin is not None
    return plugin.params


def against_mujoco(budget: Budget) -> Measurement:
    """The whole call of both on the same noisy recording; the peer once."""
    with tempfile.TemporaryDirectory() as folder:
        recorded = record(Path(folder))
        times, found = [], identify(recorded.rig, recorded.path, FIT)
        for _ in range(3):
            begun = time.perf_counter()
            found = identify(load_rig(sample_rig(), interpret=False), recorded.path, FIT)
            times.append(time.perf_counter() - begun)
        numbers = {number.name: number for number in found.numbers}
        off = _outside(numbers, recorded.truth)
        note = f"{len(numbers) - len(off)} of {len(numbers)} numbers are true within {CLOSE:g} intervals"
        failed = f"{', '.join(off)} outside" if off else ""
        try:
            seconds, theirs = _with_mujoco(recorded)
        except MissingPeer as missing:
            return Measurement(Samples(np.array(times)), note=f"{missing}; {note}", failed=failed)
    both = [name for name, number in numbers.items() if number.state == "found"]
    alike = [
        name
        for name in both
        if abs(numbers[name].value - theirs[name][0]) <= CLOSE * np.hypot(numbers[name].interval, theirs[name][1])
    ]
    note += f"; both find the same {len(alike)} of {len(both)} within {CLOSE:g} intervals of both"
    return Measurement(Samples(np.array(times), np.full(len(times), seconds)), note=note, failed=failed)


def _outside(numbers: Mapping[str, FoundNumber], truth: Mapping[str, float]) -> list[str]:
    return [n for n, number in numbers.items() if abs(number.value - truth[n]) > CLOSE * number.interval]


def _with_mujoco(recorded: Recorded) -> tuple[float, dict[str, tuple[float, float]]]:
    """(seconds, name -> (value, half of its interval of 95 %)). Raises MissingPeer."""
    mujoco, sysid = import_peer("mujoco"), import_peer("mujoco.sysid")
    if not hasattr(sysid, "optimize"):
        raise MissingPeer("mujoco[sysid]")
    rig = recorded.rig
    begun = time.perf_counter()
    spec = _spec(mujoco, rig)
    model = spec.compile()
    motion = read_motion(rig, recorded.path, sources_of(rig))
    # runs begin from filtered positions
    start = samples_of(motion, 10.0)
    states, controls, positions = [], [], []
    times = np.arange(CHUNK) * motion.step
    columns = sysid.TimeSeries.compute_all_sensor_mapping(model)
    for first in range(CHUNK, len(motion.t) - 2 * CHUNK, CHUNK):
        part = slice(first, first + CHUNK)
        row = int(np.argmin(np.abs(start.t - motion.t[first])))
        shift = motion.t[first] - start.t[row]
        position = start.position[row] + shift * start.velocity[row]
        states.append(
            sysid.create_initial_state(model, position, start.velocity[row] + shift * start.acceleration[row])
        )
        controls.append(sysid.TimeSeries(times, motion.drive[part]))
        positions.append(sysid.TimeSeries(times, motion.position[part], columns))
    names = [f"part_{k}" for k in range(len(states))]
    sequences = sysid.ModelSequences("arm", spec, names, states, controls, positions)
    parameters = _parameters(sysid, rig)
    residual = sysid.build_residual_fn(models_sequences=[sequences], resample_true=False)
    with redirect_stdout(StringIO()):  # it prints its steps
        found, result = sysid.optimize(parameters, residual, verbose=False, max_iters=MOST_STEPS, x_scale="jac")
    left, _, _ = residual(found.as_vector(), found)
    _, intervals = sysid.calculate_intervals([part.ravel() for part in left], result.jac)
    seconds = time.perf_counter() - begun
    pairs = zip(found.as_vector().tolist(), np.asarray(intervals).tolist(), strict=True)
    return seconds, dict(zip(parameters.keys(), pairs, strict=True))


def _spec(mujoco: Any, rig: Rig) -> Any:
    """The arm with motors whose control is the current, at the numbers of the rig."""
    text = ET.parse(sample_rig().parent / "robots/ur5.urdf").getroot()
    keys = {"balanceinertia": "false", "fusestatic": "true", "discardvisual": "true"}
    ET.SubElement(ET.SubElement(text, "mujoco"), "compiler", keys)
    spec = mujoco.MjSpec.from_string(ET.tostring(text, encoding="unicode"))
    spec.option.timestep = rig.tick_model.step
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    kinds = {"trntype": mujoco.mjtTrn.mjTRN_JOINT}, {"objtype": mujoco.mjtObj.mjOBJ_JOINT}
    for name in rig.joints:
        spec.add_actuator(name=name, target=name, **kinds[0])
        spec.add_sensor(name=name, type=mujoco.mjtSensor.mjSENS_JOINTPOS, objname=name, **kinds[1])
        for what in NUMBERS:
            _apply(spec, _drive(rig, name), name, what, getattr(_drive(rig, name), what))
    return spec


def _apply(spec: Any, drive: Any, name: str, what: str, value: float) -> None:
    """Set a number of a drive."""
    joint = spec.joint(name)
    if what == "torque_constant":
        spec.actuator(name).gear[0] = value * drive.ratio
    elif what == "rotor_inertia":
        joint.armature = value * drive.ratio**2
    elif what == "coulomb":
        joint.frictionloss = value
    elif np.ndim(joint.damping):  # a polynomial, of the speed
        joint.damping[0] = value
    else:
        joint.damping = value


def _parameters(sysid: Any, rig: Rig) -> Any:
    found = sysid.ParameterDict()
    for what in NUMBERS:
        for name in rig.joints:
            drive = _drive(rig, name)

            def modify(spec: Any, parameter: Any, name: str = name, what: str = what, drive: Any = drive) -> None:
                _apply(spec, drive, name, what, float(parameter.value[0]))

            value, full = float(getattr(drive, what)), f"joints.{name}.actuator.{what}"
            found.add(sysid.Parameter(full, value, 0.3 * value, 3.0 * value, modifier=modify))
    return found


CASES = (
    BenchCase(
        "identify ur5_sim",
        f"24 numbers of six drives from {SECONDS:g} s of noisy positions and currents, the whole call",
        against_mujoco,
        f"mujoco.sysid on the same recording, in runs of {CHUNK} ms, at most {MOST_STEPS} steps",
        unit="s",
        target=Target("ratio", 10.0),
        on_request=True,
    ),
)
