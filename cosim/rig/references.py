"""References before a run: what is odd about them, and their largest values beside the limits of their joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.core.types import Array, Trajectory, breaks_of, declared
from cosim.core.units import TURN, quantity_unit
from cosim.rig.wiring.wired_rig import WiredRig

REFERENCE_SAMPLES = 2000  # of a trajectory
LONGEST_MOTION = 60.0  # s of it that are looked at
REFERENCE_TOLERANCE = 1e-9  # of a reference at its limit
# samples of a stepping field per electrical turn: with fewer the speed at which it loses its steps is more than 5 %
# lower than that of a field that turns smoothly
FEWEST_SAMPLES = 20.0
BESIDE = 1e-7  # s from a break, where its sides are sampled
HARDLY = 0.01  # of the way of a reference: in a run in which it goes less far, it does not move
MOST_LONGER = 50.0  # runs that a reference lasts: its times may be in ms, or numbers of rows
SAMPLES_OF_A_WAY = 200
NEAR = TURN / 12.0  # rad: a place to which the way round is no sensible one


def doubts_of_references(rig: WiredRig) -> Iterator[str]:
    """What is odd about the references of a rig, in lines."""
    yield from _said_by_themselves(rig)
    yield from _outside_the_run(rig)
    yield from _long_ways_round(rig)
    yield from _beyond_limits(rig)
    yield from _coarse_fields(rig)


def _said_by_themselves(rig: WiredRig) -> Iterator[str]:
    """What trajectories warn of: guesses, oddities, and a start elsewhere."""
    for trajectory in rig.plant.prescribed.values():
        yield from declared(trajectory, "doubts", ())
    for loop in rig.tick_model.loops:
        yield from declared(loop.trajectory, "doubts", ())
        if not rig.plant.real:  # the plan of their motion says where it begins
            yield from declared(loop.trajectory, "elsewhere", ())


def _outside_the_run(rig: WiredRig) -> Iterator[str]:
    """A line for each reference out of a table that is over before the run, hardly moves until its end, or is much
    longer."""
    duration = rig.spec.schedule.duration_ns * 1e-9
    for loop in rig.tick_model.loops:
        end, of_table = float(loop.trajectory.end), declared(loop.trajectory, "elsewhere", None) is not None
        if not of_table or not math.isfinite(end):
            continue
        both = f"the reference of '{loop.name}' ends at {end:.4g} s, the run at {duration:.4g} s"
        if end <= 0.0:
            yield f"the reference of '{loop.name}' is over at {end:.4g} s, before the run; begin its times at 0"
        elif end > duration and _way(loop, duration) < HARDLY * _way(loop, end):
            yield f"{both}, before it moves; lengthen schedule.duration, or check the unit of its times"
        elif end > MOST_LONGER * duration:
            yield f"{both}; check the unit of its times, or lengthen schedule.duration"


def _way(loop: ControlLoop, end: float) -> float:
    """How far the reference goes from its start until then: the largest distance of any joint."""
    places = [loop.trajectory.sample(t)["position"] for t in np.linspace(0.0, end, SAMPLES_OF_A_WAY)]
    return float(np.abs(np.array(places) - places[0]).max())


def _long_ways_round(rig: WiredRig) -> Iterator[str]:
    """A line for each reference of a continuous joint that goes nearly a turn to a place that is near."""
    continuous = {joint.name for joint in rig.spec.mechanism.description.joints if joint.kind == "continuous"}
    for loop in rig.tick_model.loops:
        if not math.isfinite(end := float(loop.trajectory.end)):
            continue
        ways = loop.trajectory.sample(end)["position"] - loop.trajectory.sample(0.0)["position"]
        for k, way in zip(loop.index, ways, strict=True):
            short = math.remainder(way, TURN)
            if rig.joints[k] in continuous and TURN / 2 < abs(way) < TURN and abs(short) < NEAR:
                turned, shorter = (f"{math.degrees(angle):.4g}°" for angle in (way, short))
                what = f"the reference of the continuous joint '{rig.joints[k]}' turns by {turned}"
                yield f"{what}; the shorter way is {shorter}, by wrap: shortest in its trajectory"


class ReferenceSamples(NamedTuple):
    """A reference within the run, not blended: t (k,) [s]; position, velocity, acceleration (k, n); jerk (n,): its
    largest between the breaks, infinite where the acceleration jumps."""

    t: Array
    position: Array
    velocity: Array
    acceleration: Array
    jerk: Array


def reference_samples(rig: WiredRig, loop: ControlLoop) -> ReferenceSamples:
    end = min(float(loop.trajectory.end), rig.spec.schedule.duration_ns * 1e-9, LONGEST_MOTION)
    times = np.linspace(0.0, end, REFERENCE_SAMPLES) if end > 0.0 else np.zeros(1)
    samples = [loop.trajectory.sample(float(t)) for t in times]
    q, v, a = (np.array([sample[what] for sample in samples]) for what in ("position", "velocity", "acceleration"))
    return ReferenceSamples(times, q, v, a, _largest_jerk(loop.trajectory, times, a))


def _largest_jerk(trajectory: Trajectory, times: Array, acceleration: Array) -> Array:
    """(n,) [per s³]"""
    if len(times) < 2:
        return np.zeros(acceleration.shape[1])
    breaks = breaks_of(trajectory)
    inside = breaks[(breaks > 0.0) & (breaks < times[-1])][:REFERENCE_SAMPLES]
    at = np.searchsorted(times, inside)
    smooth = np.ones(len(times) - 1, dtype=bool)
    smooth[np.clip(at - 1, 0, len(smooth) - 1)] = False
    rates = np.abs(np.diff(acceleration, axis=0)) / np.diff(times)[:, None]
    largest = rates[smooth].max(axis=0) if smooth.any() else rates.max(axis=0)
    before, after = (
        np.array([trajectory.sample(float(t + side))["acceleration"] for t in inside]).reshape(
            -1, acceleration.shape[1]
        )
        for side in (-BESIDE, BESIDE)
    )
    allowed = 3.0 * BESIDE * rates.max(axis=0) + REFERENCE_TOLERANCE * (1.0 + np.abs(acceleration).max(axis=0))
    return np.where((np.abs(after - before) > allowed).any(axis=0), np.inf, largest)


def _beyond_limits(rig: WiredRig) -> Iterator[str]:
    """A line for each joint whose reference leaves its limits of position or velocity."""
    limits, units = rig.limits, rig.plant.model.dof_units
    for loop in rig.tick_model.loops:
        if not loop.needs_reference("position"):
            continue
        times, position, velocity, *_ = reference_samples(rig, loop)
        for i, k in enumerate(loop.index):
            bounds = {
                "position": (position[:, i], limits.lower[k], limits.upper[k]),
                "velocity": (velocity[:, i], -limits.velocity[k], limits.velocity[k]),
            }
            for what, (values, lower, upper) in bounds.items():
                excess = np.maximum(values - upper, lower - values)
                worst = int(np.argmax(excess))
                if excess[worst] > REFERENCE_TOLERANCE:
                    unit = quantity_unit(f"joint {what}", units[k])
                    bound = upper if values[worst] > upper else lower
                    yield (
                        f"the {what} of the reference of joint '{rig.joints[k]}' is {values[worst]:.4g} {unit}"
                        f" at {times[worst]:.4g} s, its limit {bound:.4g} {unit}"
                    )


def _coarse_fields(rig: WiredRig) -> Iterator[str]:
    """A line for each joint whose step motor is to turn so fast that its field jumps in large angles."""
    for loop in rig.tick_model.loops:
        if not loop.needs_reference("velocity"):
            continue
        velocity = reference_samples(rig, loop).velocity
        for i, k in enumerate(loop.index):
            samples_of = _samples_per_turn(rig, rig.joints[k])
            top = float(np.abs(velocity[:, i]).max())
            if samples_of is None or not (samples := samples_of(top)) < FEWEST_SAMPLES:
                continue
            unit = quantity_unit("joint velocity", rig.plant.model.dof_units[k])
            what = f"the field of joint '{rig.joints[k]}' has {samples:.3g} samples per electrical turn"
            enough = FEWEST_SAMPLES / samples * 1e-3 / rig.plant.periods[rig.joints[k]]
            fix = f"raise open_loop.rate to {enough:.3g} kHz"
            yield f"{what} at {top:.4g} {unit}, so that it loses steps earlier; {fix}"


def _samples_per_turn(rig: WiredRig, joint: str) -> Callable[[float], float] | None:
    """Of the field of a step motor; None for other drives."""
    sampled = getattr(rig.plant.actuators.get(joint), "sampled", {})
    samplers = [getattr(one, "sampler", None) for one in sampled.values()]
    return next((each.samples_per_turn for each in samplers if each and hasattr(each, "samples_per_turn")), None)
