"""Elastic links: what links and modes cost, a flexible arm in real time, in rollouts and beside exudyn."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from benchmarks.paired_timing import Budget, RepeatedCall, Samples, shortest_time, time_pairs, undisturbed
from benchmarks.peers_exudyn import Cables, tube
from benchmarks.robots import repeated_call, rig_path
from benchmarks.rows import CPU_TIME, BenchCase, Measurement, Target
from benchmarks.rows_drives import real_time
from cosim import Rig, load_rig
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.elastic.beam import Beam, BeamSection, ModeCounts, constant
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose

ARM = "rigs/bench/flexible_arm.yaml"
LINKS, MODES = (1, 2, 4, 8, 16), (1, 2, 3, 4, 5, 6)
RUNS = 128
ELEMENTS = 2  # per cable: as many unknowns that move as an arm of three modes per link has, and four more
SOLVER = "EigenDense"  # the fastest of exudyn's for so few unknowns
PEER_PAIRS = 5  # exudyn simulates a second at a time


@cache
def planar_chain(links: int, modes: int) -> Model:
    """Beams of 1 m with a payload at the last tip; compiled."""
    zero, bending, rigid = constant(0.0), constant(100.0), constant(1e6)
    section = BeamSection(constant(1.0), (zero, zero, zero), rigid, rigid, (bending, bending), (rigid, rigid))
    beam = Beam(1.0, section, ModeCounts(modes))
    tip = np.array([1.0, 0.0, 0.0])
    names = ["base", *(f"link{k}" for k in range(links))]
    joints = [
        Joint(f"joint{k}", "revolute", names[k], names[k + 1], Pose(np.eye(3), tip if k else np.zeros(3)))
        for k in range(links)
    ]
    joints.append(Joint("grip", "fixed", names[-1], "payload", Pose(np.eye(3), tip)))
    beams = [Link(name, elastic=beam.link()) for name in names[1:]]
    payload = Link("payload", Inertial(0.8, np.zeros(3), 1e-3 * np.eye(3)))
    model = Model(Mechanism("chain", "base", (Link("base"), *beams, payload), tuple(joints)))
    model.compiled("forward_dynamics")
    model.forward_dynamics(*np.zeros((3, model.nv)))
    return model


def forward(links: int, modes: int) -> RepeatedCall:
    model = planar_chain(links, modes)
    q, v, tau = np.random.default_rng(0).uniform(-0.05, 0.05, (3, model.nv))
    return repeated_call(model.forward_dynamics, q, v, tau)


def growth(sizes: Sequence[tuple[int, int]], budget: Budget) -> Measurement:
    """Of the largest against the smallest of (links, modes); the note has the exponent of a fit to all but this."""
    sizes = sizes[: budget.of(len(sizes), 3)]
    counts = [links if sizes[0][0] != sizes[-1][0] else modes for links, modes in sizes]
    times = [shortest_time(forward(*size), budget, CPU_TIME) for size in sizes]
    call = shortest_time(forward(1, 1), budget, CPU_TIME)
    exponent = np.polyfit(np.log(counts[1:]), np.log(times[1:]), 1)[0]
    samples = time_pairs(forward(*sizes[-1]), forward(*sizes[0]), budget, CPU_TIME).per(counts[-1], counts[0])
    note = f"time ∝ number^{exponent:.2f} over {counts[1:]}; one link with one mode {call * 1e6:.2f} µs"
    return Measurement(samples, note=note, growth=True)


def arm(integrator: str, stiffening: bool = True) -> Rig:
    settings = [f"schedule.integrator={integrator}"]
    if not stiffening:
        settings += [f"mechanism.elastic.{k}.beam.stiffening=false" for k in range(2)]
    return load_rig(rig_path(ARM), settings, interpret=False)


def arm_in_real_time(integrator: str, stiffening: bool, budget: Budget) -> Measurement:
    return Measurement(real_time(arm(integrator, stiffening), budget))


def rollouts(integrator: str, budget: Budget) -> Measurement:
    """Of all runs together: elapsed time per simulated second against real time."""
    rig, found = arm(integrator), []
    factors = np.random.default_rng(0).uniform(0.5, 1.0, (RUNS, 1))
    gains = {name: factors * np.atleast_1d(values) for name, values in rig.parameters.items()}
    rig.rollouts(gains, duration=1.0, metrics=["error_rms"])
    with undisturbed(all_processors=True):
        for _ in range(max(budget.of(5), budget.pairs // 10)):
            begun = time.perf_counter()
            batch = rig.rollouts(gains, duration=1.0, metrics=["error_rms"])
            found.append(time.perf_counter() - begun)
            assert not batch.stopped.any()
    note = f"{RUNS} runs, {len(os.sched_getaffinity(0))} threads"
    return Measurement(Samples(np.array(found) / RUNS, np.ones(len(found))), note=note)


def cables() -> Cables:
    """The arm with free joints, turning as one at first."""
    system, elbow, along = Cables(rate=1.0), np.array([0.8, 0.0]), np.array([0.5, np.sqrt(0.75)])
    first = system.cable([0.0, 0.0], 0.0, (0.8, ELEMENTS, tube(25e-3)))
    second = system.cable(elbow, np.pi / 3.0, (0.7, ELEMENTS, tube(20e-3)))
    system.pin_to_ground(first[0])
    system.mass(elbow, 1.2, [first[1], second[0]])
    system.mass(elbow + 0.7 * along, 0.8, [second[1]])
    return system


def beside_exudyn(integrator: str, step: float, budget: Budget) -> Measurement:
    """CPU time of a simulated second: our whole ticks of 0.2 ms, and its steps, without assembly on both sides."""
    Cables()  # a missing peer is reported before anything is compiled
    rig = arm(integrator)
    few = replace(budget, pairs=min(PEER_PAIRS, budget.pairs))
    ours, theirs = [], []
    for _ in range(few.pairs):
        ours.append(np.median(real_time(rig, replace(budget, pairs=1)).ours))
        system = cables()
        system.assemble(1.0, step, SOLVER)
        with undisturbed():
            begun = time.process_time()
            system.solve()
            theirs.append(time.process_time() - begun)
    return Measurement(Samples(np.array(ours), np.array(theirs)), note=f"{ELEMENTS} elements per link there")


CASES = (
    BenchCase(
        "elastic links",
        f"forward dynamics of {LINKS[-1]} planar links with 2 bending modes, per link, CPU time",
        partial(growth, tuple((n, 2) for n in LINKS)),
        "one such link",
        target=Target("ratio", 1.5, at_most=True),
    ),
    BenchCase(
        "elastic modes",
        f"forward dynamics of 2 planar links with {MODES[-1]} bending modes each, per mode, CPU time",
        partial(growth, tuple((2, n) for n in MODES)),
        "1 mode each",
    ),
    *(
        BenchCase(
            f"elastic arm {integrator}{'' if stiffening else ' without stiffening'}",
            f"2 planar links with 3 bending modes{'' if stiffening else ' without stiffening'}, ticks of 0.2 ms with a"
            f" controller, {integrator}, per simulated second",
            partial(arm_in_real_time, integrator, stiffening),
            "real time",
            "ms",
            Target("ratio", 1000.0) if integrator != "rk4" else None,
        )
        for integrator in ("rk4", "semi_implicit_euler")
        for stiffening in (True, False)
    ),
    *(
        BenchCase(
            f"elastic arm rollouts {integrator}",
            f"the same in rollouts on all cores, {integrator}, per simulated second of one run",
            partial(rollouts, integrator),
            "real time",
            "ms",
            Target("ratio", 1000.0),
        )
        for integrator in ("rk4", "semi_implicit_euler")
    ),
    *(
        BenchCase(
            f"elastic arm exudyn {name} {integrator}",
            f"2 planar links with 3 bending modes, ticks of 0.2 ms, {integrator}, per simulated second",
            partial(beside_exudyn, integrator, step),
            f"exudyn: free arm of cables, generalised α, steps of {name}",
            "ms",
            Target("ratio", 20.0) if step < 1e-3 else None,
        )
        for name, step in (("0.2 ms", 2e-4), ("1 ms", 1e-3))
        for integrator in ("rk4", "semi_implicit_euler")
    ),
)
