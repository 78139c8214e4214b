"""One evaluation of the dynamics, called from Python."""

from __future__ import annotations

from functools import partial

import numpy as np

from cosim.bench import paired_timing
from cosim.bench.paired_timing import Budget
from cosim.bench.peers import Pinocchio, relative_difference
from cosim.bench.robots import PANDA, TALOS, UR5, load_robot, random_state, repeated_call
from cosim.bench.rows import BenchCase, Measurement, Target

FASTER = Target("ratio", 3.0)


def forward(name: str, mimics: bool, budget: Budget) -> Measurement:
    robot = load_robot(name, mimics)
    model, pinocchio = robot.model, Pinocchio.from_urdf(robot.text, robot.model)
    q, v, tau = random_state(model)
    out = np.empty(model.nv)
    difference = relative_difference(model.forward_dynamics(q, v, tau), pinocchio.forward(q, v, tau))
    ours = repeated_call(model.forward_dynamics, q, v, tau, out)
    return Measurement(paired_timing.time_pairs(ours, pinocchio.block("aba", q, v, tau), budget), difference)


def inverse(name: str, budget: Budget) -> Measurement:
    robot = load_robot(name)
    model, pinocchio = robot.model, Pinocchio.from_urdf(robot.text, robot.model)
    q, v, qdd = random_state(model)
    out = np.empty(model.nv)
    difference = relative_difference(model.inverse_dynamics(q, v, qdd), pinocchio.inverse(q, v, qdd))
    ours = repeated_call(model.inverse_dynamics, q, v, qdd, out)
    return Measurement(paired_timing.time_pairs(ours, pinocchio.block("rnea", q, v, qdd), budget), difference)


def hybrid(name: str, budget: Budget) -> Measurement:
    """Every other joint is prescribed with its acceleration of the forward dynamics, so the results are equal."""
    model = load_robot(name).model
    q, v, tau = random_state(model)
    expected, out = model.forward_dynamics(q, v, tau), (np.empty(model.nv), np.empty(model.nv))
    prescribed = np.arange(model.nv) % 2 == 0
    found = model.hybrid_dynamics(q, v, expected, np.where(prescribed, 0.0, tau), prescribed)
    f = model.hybrid_dynamics

    def ours(n: int) -> None:
        call = f
        for _ in range(n):
            call(q, v, expected, tau, prescribed, out=out)

    samples = paired_timing.time_pairs(
        ours, repeated_call(model.forward_dynamics, q, v, tau, np.empty(model.nv)), budget
    )
    return Measurement(samples, relative_difference(np.concatenate(found), np.concatenate([expected, tau])))


ABA, RNEA = "pinocchio aba from Python", "pinocchio rnea from Python"
FREE = "forward_dynamics from Python"
FINGERS = "; the fingers coupled (8 dof) here, free (9 dof) in aba, which takes no mimic joints"

CASES = (
    BenchCase("forward_dynamics ur5", "UR5, 6 dof, from Python", partial(forward, UR5, True), ABA, target=FASTER),
    BenchCase("forward_dynamics panda", "Panda" + FINGERS, partial(forward, PANDA, True), ABA, target=FASTER),
    BenchCase(
        "forward_dynamics panda free",
        "Panda, 9 dof: both without the mimic joint of the file",
        partial(forward, PANDA, False),
        ABA,
        target=FASTER,
    ),
    BenchCase(
        "forward_dynamics talos",
        "TALOS, 32 dof, from Python",
        partial(forward, TALOS, True),
        ABA,
        target=FASTER,
    ),
    BenchCase("inverse_dynamics ur5", "UR5, 6 dof, from Python", partial(inverse, UR5), RNEA),
    BenchCase("inverse_dynamics talos", "TALOS, 32 dof, from Python", partial(inverse, TALOS), RNEA),
    BenchCase("hybrid_dynamics ur5", "UR5, every other joint prescribed", partial(hybrid, UR5), FREE),
    BenchCase("hybrid_dynamics talos", "TALOS, every other joint prescribed", partial(hybrid, TALOS), FREE),
)
