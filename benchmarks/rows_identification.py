"""Identification of the drives of an arm from one recording, beside MuJoCo's toolbox for system identification."""

from __future__ import annotations

import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paired_timing import Budget, Samples
from benchmarks.peers import MissingPeer, import_peer
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, Target
from cosim import Rig, load_rig
from cosim.apps.identification.equation_error import sources_of
from cosim.apps.identification.excitation import excite, overlay_of
from cosim.apps.identification.identification import EQUATION_ERROR, OUTPUT_ERROR, identify
from cosim.apps.identification.intervals import deviations_of_interval
from cosim.apps.identification.recorded_motion import read_motion, samples_of
from cosim.apps.identification.variables import choose
from cosim.rig.reading.yaml_source import overlay_text, read_overlay

SECONDS = 60.0
FIT = ("friction", "rotor_inertia", "torque_constant")
# kinds of numbers of a drive -> what it is in MuJoCo
NUMBERS = ("viscous", "coulomb", "rotor_inertia", "torque_constant")
NOISE = {"position": 2e-5, "current": 0.02}  # rad, A
CHUNK = 500  # ticks of a run of the peer; longer ones drift away
MOST_STEPS = 5  # of the peer; more change nothing
CLOSE_INTERVALS = 3.0  # intervals within which both must find the same


@dataclass(frozen=True)
class Recorded:
    """The rig, how to load it as it was recorded, a noisy recording of one with other drives, and their numbers."""

    rig: Rig
    overlay: Path
    path: Path
    truth: Mapping[str, float]

    def load(self) -> Rig:
        return load_rig(sample_rig(), read_overlay(self.overlay), interpret=False)


def record(folder: Path) -> Recorded:
    path, rng = sample_rig(), np.random.default_rng(1)
    rig = load_rig(path, interpret=False)
    motion = excite(rig, choose(rig, FIT), SECONDS)
    (folder / "motion.csv").write_text(motion.table())
    overlay = folder / "motion.yaml"
    overlay.write_text(overlay_text(overlay_of(rig, folder / "motion.csv", SECONDS), str(path)))
    truth = {
        f"joints.{name}.actuator.{what}": float(getattr(_drive(rig, name), what)) * rng.uniform(0.75, 1.25)
        for name in rig.joints
        for what in NUMBERS
    }
    channels = [f"{name}/{what}" for name in rig.joints for what in NOISE]
    # controllers do not know the numbers of the machine
    run = load_rig(path, read_overlay(overlay), interpret=False).rollouts(
        parameters={name: [value] for name, value in truth.items()},
        duration=SECONDS,
        signals=channels,
        every=1,
        unknown=tuple(truth),
    )
    noise = {name: rng.normal(size=len(run.t)) * NOISE[name.rpartition("/")[2]] for name in channels}
    table = {"t": run.t} | {name: run[name][0] + noise[name] for name in channels}
    data = np.column_stack(list(table.values()))
    np.savetxt(folder / "recording.csv", data, delimiter=",", header=",".join(table), comments="")
    return Recorded(rig, overlay, folder / "recording.csv", truth)


def _drive(rig: Rig, name: str) -> Any:
    plugin = rig.spec.joints[name].actuator
    assert plugin is not None
    return plugin.params


@cache
def _recorded() -> tuple[tempfile.TemporaryDirectory, Recorded]:
    """For all rows; the folder lives as long as the process."""
    folder = tempfile.TemporaryDirectory()
    return folder, record(Path(folder.name))


@cache
def _peer() -> Peer:
    """Once for all rows: it takes a minute. Raises MissingPeer."""
    return _with_mujoco(_recorded()[1])


def against_mujoco(method: str, budget: Budget) -> Measurement:
    """The whole call of both on the same noisy recording; the peer once."""
    recorded = _recorded()[1]
    times, found = [], identify(recorded.load(), recorded.path, FIT, method=method)
    for _ in range(3):
        begun = time.perf_counter()
        found = identify(recorded.load(), recorded.path, FIT, method=method)
        times.append(time.perf_counter() - begun)
    numbers = {number.name: number for number in found.numbers}
    ours = {name: (number.value, number.interval) for name, number in numbers.items()}
    outside = _outside(ours, recorded.truth)
    note = f"{len(numbers) - len(outside)} of {len(numbers)} numbers are true within {CLOSE_INTERVALS:g} intervals"
    failed = f"{', '.join(outside)} outside" if outside else ""
    try:
        peer = _peer()
    except MissingPeer as missing:
        return Measurement(Samples(np.array(times)), note=f"{missing}; {note}", failed=failed)
    both = [name for name, number in numbers.items() if number.state == "found" and name in peer.found]
    true = [
        len(both) - len(_outside({name: of[name] for name in both}, recorded.truth)) for of in (peer.own, peer.found)
    ]
    alike = [
        name
        for name in both
        if abs(ours[name][0] - peer.found[name][0]) <= CLOSE_INTERVALS * np.hypot(ours[name][1], peer.found[name][1])
    ]
    note += (
        f"; of the {len(both)} that the peer finds too {true[0]} are true within {CLOSE_INTERVALS:g} of its own"
        f" intervals, which take its errors for independent, {true[1]} where errors of a run may be alike; both find"
        f" the same {len(alike)} of {len(both)}; median errors: {_middle(ours, both, recorded):.2g} %,"
        f" {_middle(peer.found, both, recorded):.2g} %"
    )
    return Measurement(Samples(np.array(times), np.full(len(times), peer.seconds)), note=note, failed=failed)


Intervals = Mapping[str, tuple[float, float]]  # name -> (value, half of its interval of 95 %)


def _outside(found: Intervals, truth: Mapping[str, float]) -> list[str]:
    return [
        name for name, (value, interval) in found.items() if not abs(value - truth[name]) <= CLOSE_INTERVALS * interval
    ]


def _middle(found: Intervals, names: Sequence[str], recorded: Recorded) -> float:
    """%"""
    return 100.0 * float(np.median([abs(found[name][0] / recorded.truth[name] - 1.0) for name in names]))


@dataclass(frozen=True)
class Peer:
    """Its time [s], and its numbers with its own intervals, and with intervals for errors of runs that are alike."""

    seconds: float
    own: Intervals
    found: Intervals


def _with_mujoco(recorded: Recorded) -> Peer:
    """Raises MissingPeer."""
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
    # currents act over a whole step
    drive = np.vstack([0.5 * (motion.drive[1:] + motion.drive[:-1]), motion.drive[-1:]])
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
        controls.append(sysid.TimeSeries(times, drive[part]))
        positions.append(sysid.TimeSeries(times, motion.position[part], columns))
    names = [f"part_{k}" for k in range(len(states))]
    sequences = sysid.ModelSequences("arm", spec, names, states, controls, positions)
    parameters = _parameters(sysid, rig)
    residual = sysid.build_residual_fn(models_sequences=[sequences], resample_true=False)
    with redirect_stdout(StringIO()):  # it prints its steps
        found, result = sysid.optimize(parameters, residual, verbose=False, max_iters=MOST_STEPS, x_scale="jac")
    left = np.array([np.ravel(part) for part in residual(found.as_vector(), found)[0]])
    # its intervals need derivatives of one order
    scale = np.linalg.norm(result.jac, axis=0)
    own = np.asarray(sysid.calculate_intervals(list(left), result.jac / scale)[1]) / scale
    seconds = time.perf_counter() - begun
    free = [name for name in parameters.keys() if not parameters[name].frozen]  # noqa: SIM118
    held = f"joints.{rig.joints[-1]}."  # by a wrong constant
    values, wide = found.as_vector().tolist(), _of_runs(left, result.jac / scale) / scale
    narrow, robust = (
        {name: (value, half) for name, value, half in zip(free, values, of.tolist(), strict=True) if held not in name}
        for of in (own, wide)
    )
    return Peer(seconds, narrow, robust)


def _of_runs(errors: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Half intervals of 95 % where errors (runs, n) of one run are alike: the sandwich of clusters (Liang and Zeger,
    Biometrika 73, 1986). The noise of the currents, integrated twice, goes through a whole run."""
    inverse = np.linalg.inv(slope.T @ slope)
    sums = np.einsum("rn,rni->ri", errors, slope.reshape(*errors.shape, -1))
    return deviations_of_interval(None) * np.sqrt(np.diag(inverse @ sums.T @ sums @ inverse))


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
        # as hard as it allows: by default it is viscous below some 0.1 rad/s
        spec.joint(name).solref_friction = [2.0 * spec.option.timestep, 1.0]
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
    # the numbers of the last joint, whose load is small, are known to its errors up to a common factor only
    found[f"joints.{rig.joints[-1]}.actuator.torque_constant"].frozen = True
    return found


def _case(name: str, method: str, target: float) -> BenchCase:
    return BenchCase(
        name,
        f"24 numbers of six drives from {SECONDS:g} s of noisy positions and currents by {method}, the whole call",
        partial(against_mujoco, method),
        f"mujoco.sysid on the same recording, in runs of {CHUNK} ms, at most {MOST_STEPS} steps",
        unit="s",
        target=Target("ratio", target),
        on_request=True,
    )


CASES = (
    _case("identify ur5_sim", EQUATION_ERROR, 10.0),
    _case("identify ur5_sim in runs", OUTPUT_ERROR, 10.0),
)
