"""One evaluation of the dynamics, called from Python."""

from __future__ import annotations

from functools import partial

import numpy as np

from cosim.bench import timing
from cosim.bench.peers import Pinocchio, relative_difference
from cosim.bench.rows import Case, Measurement, Target
from cosim.bench.states import PANDA, TALOS, UR5, load, state, three
from cosim.bench.timing import Effort

FASTER = Target("ratio", 3.0)


def forward(name: str, mimics: bool, effort: Effort) -> Measurement:
    robot = load(name, mimics)
    model, pinocchio = robot.model, Pinocchio.from_urdf(robot.text, robot.model)
    q, v, tau = state(model)
    out = np.empty(model.nv)
    difference = relative_difference(model.forward_dynamics(q, v, tau), pinocchio.forward(q, v, tau))
    ours = three(model.forward_dynamics, q, v, tau, out)
    return Measurement(timing.pairs(ours, pinocchio.block("aba", q, v, tau), effort), difference)


def inverse(name: str, effort: Effort) -> Measurement:
    robot = load(name)
    model, pinocchio = robot.model, Pinocchio.from_urdf(robot.text, robot.model)
    q, v, qdd = state(model)
    out = np.empty(model.nv)
    difference = relative_difference(model.inverse_dynamics(q, v, qdd), pinocchio.inverse(q, v, qdd))
    ours = three(model.inverse_dynamics, q, v, qdd, out)
    return Measurement(timing.pairs(ours, pinocchio.block("rnea", q, v, qdd), effort), difference)


def hybrid(name: str, effort: Effort) -> Measurement:
    """Every other joint is prescribed with the acceleration that forward dynamics gives it, so both agree."""
    model = load(name).model
    q, v, tau = state(model)
    expected, out = model.forward_dynamics(q, v, tau), (np.empty(model.nv), np.empty(model.nv))
    prescribed = np.arange(model.nv) % 2 == 0
    found = model.hybrid_dynamics(q, v, expected, np.where(prescribed, 0.0, tau), prescribed)
    f = model.hybrid_dynamics

    def ours(n: int) -> None:
        call = f
        for _ in range(n):
            call(q, v, expected, tau, prescribed, out=out)

    samples = timing.pairs(ours, three(model.forward_dynamics, q, v, tau, np.empty(model.nv)), effort)
    return Measurement(samples, relative_difference(np.concatenate(found), np.concatenate([expected, tau])))


ABA, RNEA = "pinocchio aba from Python", "pinocchio rnea from Python"
FREE = "forward_dynamics from Python"
FINGERS = "; the fingers coupled (8 dof) here, free (9 dof) in aba, which takes no mimic joints"

CASES = (
    Case("forward_dynamics ur5", "UR5, 6 dof, from Python", partial(forward, UR5, True), ABA, target=FASTER),
    Case("forward_dynamics panda", "Panda" + FINGERS, partial(forward, PANDA, True), ABA, target=FASTER),
    Case(
        "forward_dynamics panda free",
        "Panda, 9 dof: the file without its mimic joint in both",
        partial(forward, PANDA, False),
        ABA,
        target=FASTER,
    ),
    Case(
        "forward_dynamics talos",
        "TALOS, 32 dof, from Python",
        partial(forward, TALOS, True),
        ABA,
        target=FASTER,
    ),
    Case("inverse_dynamics ur5", "UR5, 6 dof, from Python", partial(inverse, UR5), RNEA),
    Case("inverse_dynamics talos", "TALOS, 32 dof, from Python", partial(inverse, TALOS), RNEA),
    Case("hybrid_dynamics ur5", "UR5, every other joint prescribed", partial(hybrid, UR5), FREE),
    Case("hybrid_dynamics talos", "TALOS, every other joint prescribed", partial(hybrid, TALOS), FREE),
)
