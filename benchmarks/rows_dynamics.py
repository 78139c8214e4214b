"""One evaluation of the dynamics, called from Python, and from a loop in machine code."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

import numpy as np

from benchmarks import paired_timing
from benchmarks.paired_timing import Budget, RepeatedCall
from benchmarks.peers import Pinocchio, relative_difference
from benchmarks.peers_generated_c import compiled_c, expression, generated_c, native_loop
from benchmarks.robots import PANDA, TALOS, UR5, load_robot, random_state, repeated_call
from benchmarks.rows import BenchCase, Measurement, Target, beside
from benchmarks.rows_chain import mechanism
from cosim.core.compile import Compiled
from cosim.core.types import Array
from cosim.mechanics.multibody import Model

FASTER = Target("ratio", 5.0)  # of natural calls: arrays in, a new array out
FASTER_DERIVATIVES = Target("ratio", 3.0)
FASTER_THAN_C = Target("ratio", 1.2)


def forward(name: str, mimics: bool, budget: Budget) -> Measurement:
    robot = load_robot(name, mimics)
    model, (q, v, tau) = robot.model, random_state(robot.model)
    ours = repeated_call(model.forward_dynamics, q, v, tau)

    def peer() -> tuple[RepeatedCall, float]:
        pinocchio = Pinocchio.from_urdf(robot.text, model)
        difference = relative_difference(model.forward_dynamics(q, v, tau), pinocchio.forward(q, v, tau))
        return pinocchio.block("aba", q, v, tau), difference

    return beside(ours, peer, budget)


def inverse(name: str, budget: Budget) -> Measurement:
    robot = load_robot(name)
    model, (q, v, qdd) = robot.model, random_state(robot.model)
    ours = repeated_call(model.inverse_dynamics, q, v, qdd)

    def peer() -> tuple[RepeatedCall, float]:
        pinocchio = Pinocchio.from_urdf(robot.text, model)
        difference = relative_difference(model.inverse_dynamics(q, v, qdd), pinocchio.inverse(q, v, qdd))
        return pinocchio.block("rnea", q, v, qdd), difference

    return beside(ours, peer, budget)


def derivatives(name: str, budget: Budget) -> Measurement:
    """Of the accelerations with respect to q, v and τ."""
    robot = load_robot(name, mimics=False)
    model, (q, v, tau) = robot.model, random_state(robot.model)
    found, ours = (
        model.forward_dynamics_derivatives(q, v, tau),
        repeated_call(model.forward_dynamics_derivatives, q, v, tau),
    )

    def peer() -> tuple[RepeatedCall, float]:
        pinocchio = Pinocchio.from_urdf(robot.text, model)
        block, data, P = pinocchio.block("computeABADerivatives", q, v, tau), pinocchio.data, pinocchio.spread
        block(1)
        expected = [P.T @ matrix @ P for matrix in (data.ddq_dq, data.ddq_dv, data.Minv)]
        return block, max(relative_difference(*pair) for pair in zip(found, expected, strict=True))

    return beside(ours, peer, budget)


def kinematic(function: str, name: str, budget: Budget) -> Measurement:
    """One of FURTHER, in a natural call, of the last link where it is of a frame."""
    robot = load_robot(name)
    model, (q, v, _) = robot.model, random_state(robot.model)
    link, (of_frame, of_velocity, peer_call, _) = model.joints[-1].child, FURTHER[function]
    given = [q, *([v] if of_velocity else []), *([link] if of_frame else [])]
    f = getattr(model, function)
    found = f(*given)

    def ours(n: int) -> None:
        for _ in range(n):
            f(*given)

    def peer() -> tuple[RepeatedCall, float]:
        pinocchio = Pinocchio.from_urdf(robot.text, model)
        full = pinocchio.full(q, v)
        call = partial(peer_call, pinocchio.pin, pinocchio.model, pinocchio.data, pinocchio.model.getFrameId(link))

        def block(n: int) -> None:
            for _ in range(n):
                call(*full)

        P, expected = pinocchio.spread, call(*full)
        if function == "mass_matrix":
            expected = P.T @ (np.triu(expected) + np.triu(expected, 1).T) @ P  # crba gives the upper triangle
        elif function == "frame_jacobian":
            expected = expected @ P
        return block, relative_difference(np.asarray(found), np.asarray(expected))

    return beside(ours, peer, budget)


def _pose(pin: Any, model: Any, data: Any, frame: int, q: Array, v: Array) -> Array:
    pin.framesForwardKinematics(model, data, q)
    return data.oMf[frame].homogeneous


def _jacobian(pin: Any, model: Any, data: Any, frame: int, q: Array, v: Array) -> Array:
    return pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)


def _mass_matrix(pin: Any, model: Any, data: Any, frame: int, q: Array, v: Array) -> Array:
    return pin.crba(model, data, q)


def _kinetic_energy(pin: Any, model: Any, data: Any, frame: int, q: Array, v: Array) -> Array:
    return pin.computeKineticEnergy(model, data, q, v)


# function -> whether it takes a frame, whether it takes velocities, the natural call of Pinocchio and its words
FURTHER = {
    "frame_pose": (True, False, _pose, "framesForwardKinematics, oMf"),
    "frame_jacobian": (True, False, _jacobian, "computeFrameJacobian"),
    "mass_matrix": (False, False, _mass_matrix, "crba, the upper triangle"),
    "kinetic_energy": (False, True, _kinetic_energy, "computeKineticEnergy"),
}


def native(function: str, name: str, budget: Budget) -> Measurement:
    """A loop in machine code around ours, and the same loop around the peer. name: of a file, or CHAIN."""
    robot = None if name == CHAIN else load_robot(name, mimics=False)
    model = robot.model if robot else Model(mechanism(LINKS))
    compiled, (q, v, x) = model.compiled(function), random_state(model)
    assert isinstance(compiled, Compiled)
    ours, found = native_loop(compiled.library[f"{compiled.routine.symbol}.one"], q, v, x)

    def peer() -> tuple[RepeatedCall, float]:
        if robot:
            pinocchio = Pinocchio.from_urdf(robot.text, model)
        else:
            pinocchio = Pinocchio.from_mechanism(model.mechanism, model)
        library = compiled_c(generated_c(expression(pinocchio.model, function)))
        address = ctypes.cast(library.peer_call, ctypes.c_void_p).value or 0
        other, expected = native_loop(address, *pinocchio.full(q, v, x))
        return other, relative_difference(found, pinocchio.spread.T @ expected)

    return beside(ours, peer, budget)


def hybrid(name: str, budget: Budget) -> Measurement:
    """Every other joint is prescribed with its acceleration of the forward dynamics, so the results are equal."""
    model = load_robot(name).model
    q, v, tau = random_state(model)
    expected = model.forward_dynamics(q, v, tau)
    prescribed = np.arange(model.nv) % 2 == 0
    found = model.hybrid_dynamics(q, v, expected, np.where(prescribed, 0.0, tau), prescribed)
    f = model.hybrid_dynamics

    def ours(n: int) -> None:
        call = f
        for _ in range(n):
            call(q, v, expected, tau, prescribed)

    samples = paired_timing.time_pairs(ours, repeated_call(model.forward_dynamics, q, v, tau), budget)
    return Measurement(samples, relative_difference(np.concatenate(found), np.concatenate([expected, tau])))


ABA, RNEA = "pinocchio aba from Python", "pinocchio rnea from Python"
FREE = "forward_dynamics from Python"
CHAIN, LINKS = "chain", 30
GENERATED = "Pinocchio's {} as an expression of CasADi, generated as C, gcc -O3 -march=native"
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
    *(
        BenchCase(
            f"{function} {short}",
            f"{about}, from Python",
            partial(kinematic, function, name),
            f"pinocchio {words} from Python",
            target=FASTER,
        )
        for function, (*_, words) in FURTHER.items()
        for short, name, about in (("ur5", UR5, "UR5, 6 dof"), ("talos", TALOS, "TALOS, 32 dof"))
    ),
    BenchCase("inverse_dynamics ur5", "UR5, 6 dof, from Python", partial(inverse, UR5), RNEA),
    BenchCase("inverse_dynamics talos", "TALOS, 32 dof, from Python", partial(inverse, TALOS), RNEA),
    *(
        BenchCase(
            f"derivatives {short}",
            f"{about}: accelerations by q, v and τ, from Python",
            partial(derivatives, name),
            "pinocchio computeABADerivatives from Python",
            target=FASTER_DERIVATIVES,
        )
        for short, name, about in (
            ("ur5", UR5, "UR5, 6 dof"),
            ("panda", PANDA, "Panda, 9 dof"),
            ("talos", TALOS, "TALOS, 32 dof"),
        )
    ),
    BenchCase("hybrid_dynamics ur5", "UR5, every other joint prescribed", partial(hybrid, UR5), FREE),
    BenchCase("hybrid_dynamics talos", "TALOS, every other joint prescribed", partial(hybrid, TALOS), FREE),
    *(
        BenchCase(
            f"native {function.removesuffix('_dynamics')} {short}",
            f"{robot}, {what}, called by a loop in machine code",
            partial(native, function, file),
            GENERATED.format(algorithm),
            target=FASTER_THAN_C,
        )
        for function, what, algorithm in (
            ("forward_dynamics", "forward dynamics", "ABA"),
            ("inverse_dynamics", "inverse dynamics", "RNEA"),
        )
        for short, robot, file in (
            ("ur5", "UR5, 6 dof", UR5),
            ("panda", "Panda with free fingers, 9 dof", PANDA),
            ("talos", "TALOS, 32 dof", TALOS),
            ("chain", f"chain of {LINKS} bodies", CHAIN),
        )
    ),
)
