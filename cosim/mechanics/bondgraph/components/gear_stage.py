"""One stage of a gear train: an elastic mesh with backlash, a ratio, the inertia of its output and friction
that grows with the load.

The friction of the output shaft is M_T = M_0 + μ |M_load|, against its motion. At steady speed the load is what the
mesh transmits less the friction when the input drives, plus it when the load does, so with the transmitted torque M

    M_T = (M_0 + μ |M|) / (1 + μ) where the input drives, (M_0 + μ |M|) / (1 − μ) where the load drives.

The input drives where M ω > 0. Both are lines of M and |M|: with the mean m and half the difference h of 1 / (1 + μ)
and 1 / (1 − μ),

    M_T = (M_0 (m − h c) + h |M| + (1 − m) M v) s(ω),  c = v M / w,  v = ω / ω_s,  both within ±1,

which does not jump where M or ω changes its sign: within `load_width` w of M, and below the creep speed ω_s, it passes
from one to the other. By default w = M_0: an input that drives a load transmits more than that.

The efficiency of a driving stage is then η = M_load / (M_load + M_0 + μ M_load). In place of μ for both directions
there may be efficiencies of the mesh: `efficiency` η, where the input drives, is 1 / (1 + μ), and `back_efficiency` η',
where the load drives, 1 − μ. Both may depend on the speed. Where the input drives, the mesh takes M / η for the load M
that it transmits, so the friction is f M = (1/η − 1) M; where the load drives, η' M reaches the input, so
f' M = (1 − η') M. From f' = 1 on, the load cannot drive: the stage locks itself. At rest the friction is what keeps it
there, between −f' M and f M for M > 0, as of LossyGear in the Modelica Standard Library (Pelchen, Schweiger and Otter,
Modeling and Simulating the Efficiency of Gearboxes and of Planetary Gearboxes, 2nd Modelica Conference, 2002).

A sign function with a creep speed stands for the direction, and the stage creeps under load at rest. With `breakaway`
the friction comes from bristles at the input shaft, which hold: they bend by ξ of their largest twist z, and the
friction is ξ M_T, of the load that the mesh transmits, M_T = M_0 + μ |M|. Bristles that bend less than 0.9 do not slip,
so the stage does not creep under a load that swings (Dupont, Hayward, Armstrong and Altpeter, Single state
elastoplastic friction models, IEEE Trans. Automatic Control 47(5), 2002):

    z ξ̇ = ω − α |ω| ξ,  α = max(0, (|ξ| − 0.9) / 0.1) where ω ξ > 0, else 0

What the bristles store, at most z M_T / 2, counts as dissipated until they give it back. Only this friction can hold a
self-locking stage, whose `back_efficiency` is 0 or less: a worm of lead angle λ and friction angle ρ has
η = tan λ / tan(λ + ρ) and η' = tan(λ − ρ) / tan λ.

Ports: `input`, from a 1-junction; `output`, a 1-junction. Stages in a chain make a train, several inputs bonded to one
output a branching one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

from cosim.core import ops
from cosim.core.interpolation import interpolated
from cosim.core.types import Numeric, param, params
from cosim.core.units import TURN
from cosim.mechanics.bondgraph import TF, BondGraph, C, I, Law, R, Sf
from cosim.mechanics.bondgraph.components import shaft

SLIPS_FROM = 0.9  # of the largest bend of bristles: below, they hold
STEEPEST = 3.0  # of α, for steps that are too long: exact solutions stay below 1


@dataclass(frozen=True)
class MeshFriction:
    """Efficiencies η and η' at speeds of the output [rad/s], linear between them and constant outside."""

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    speeds: tuple[float, ...] = (0.0,)

    @property
    def locks(self) -> bool:
        """Whether the load cannot drive it at some speed."""
        return min(self.backward) <= 0.0

    def per_load(self, speed: Numeric) -> tuple[Numeric, Numeric]:
        """(f, f') at a speed of the output."""
        size = ops.abs(speed)
        forward, backward = (interpolated(size, self.speeds, row.__getitem__) for row in (self.forward, self.backward))
        return 1.0 / forward - 1.0, 1.0 - backward


@params
class Params:
    ratio: float = param(unit="1", doc="turns of the input per turn of the output; negative reverses")
    stiffness: float = param(
        unit="N*m/rad", above=0.0, default=math.inf, doc="of the mesh, at the input; rigid without"
    )
    damping: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="of the mesh, at the input")
    backlash: float = param(unit="rad", min=0.0, max=TURN, default=0.0, doc="from edge to edge, at the input")
    backlash_model: Literal["dead_zone", "transformer"] = param(default="dead_zone", doc="see `shaft`")
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="of the output shaft")
    coulomb: float = param(unit="N*m", min=0.0, default=0.0, doc="M_0, friction without load, at the output")
    load_friction: float = param(unit="1", min=0.0, default=0.0, doc="μ, friction per load")
    efficiency: float | None = param(unit="1", above=0.0, max=1.0, default=None, doc="of the mesh, input drives")
    back_efficiency: float | None = param(
        unit="1", max=1.0, default=None, doc="load drives, 0 or less locks; by default of the same friction, 2 − 1/η"
    )
    efficiencies: tuple[float, ...] = param(unit="1", above=0.0, max=1.0, default=(), doc="`efficiency` over `speeds`")
    back_efficiencies: tuple[float, ...] = param(unit="1", max=1.0, default=(), doc="`back_efficiency` over `speeds`")
    speeds: tuple[float, ...] = param(unit="rad/s", min=0.0, default=(), doc="of the output; linear between them")
    load_width: float | None = param(
        unit="N*m",
        above=0.0,
        default=None,
        doc="w, transmitted torque at the output below which M_0 passes between both directions; by default M_0",
    )
    viscous: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="friction per speed, at the output")
    creep_speed: float = param(unit="rad/s", above=0.0, default=0.01, doc="below which dry friction fades out")
    breakaway: float | None = param(
        unit="rad", above=0.0, default=None, doc="z, twist of the input at which it slips; without it no stiction"
    )
    bristle_time: float = param(
        unit="s", min=0.0, default=0.0, doc="τ, damping of bristles: they hold ξ + τ ξ̇, at most 1"
    )

    def __post_init__(self) -> None:
        if self.ratio == 0.0:
            raise ValueError("a ratio of 0 transmits nothing; give turns of the input per turn of the output")
        _check_losses(self)
        if self.mesh_friction.locks and self.breakaway is None:
            raise ValueError("the load cannot drive the stage (self-locking); give breakaway, or less friction")
        if math.isinf(self.stiffness) and (self.damping or self.backlash):
            raise ValueError("damping and backlash need an elastic mesh; give stiffness too, or leave them out")
        if self.breakaway is None and self.bristle_time:
            raise ValueError("bristle_time needs a stage that sticks; give breakaway too, or leave it out")
        if self.breakaway is not None and math.isinf(self.stiffness):
            raise ValueError("a stage that sticks holds what an elastic mesh transmits; give stiffness too")

    @property
    def mesh_friction(self) -> MeshFriction:
        if self.efficiencies:
            return MeshFriction(
                self.efficiencies, self.back_efficiencies or _of_same_friction(self.efficiencies), self.speeds
            )
        if self.efficiency is None:
            return MeshFriction((1.0 / (1.0 + self.load_friction),), (1.0 - self.load_friction,))
        back = self.back_efficiency
        return MeshFriction((self.efficiency,), _of_same_friction((self.efficiency,)) if back is None else (back,))

    @property
    def reversal_width(self) -> float:
        """w [N·m]"""
        return self.coulomb if self.load_width is None else self.load_width

    @property
    def grows_with_load(self) -> bool:
        """Whether its friction depends on the torque that it transmits."""
        return bool(self.load_friction or self.efficiency or self.efficiencies)

    def per_load(self, speed: Numeric) -> tuple[Numeric, Numeric]:
        """Friction per load where the input drives, and where the load drives, at this speed of the output."""
        if self.efficiency is None and not self.efficiencies:
            return self.load_friction, self.load_friction
        return self.mesh_friction.per_load(speed)


def _of_same_friction(efficiencies: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(2.0 - 1.0 / value for value in efficiencies)


def _check_losses(params: Params) -> None:
    """Raises ValueError for losses that are given twice, in part, or not over increasing speeds."""
    ways = {
        "load_friction": params.load_friction > 0.0,
        "efficiency": params.efficiency is not None,
        "efficiencies": bool(params.efficiencies),
    }
    given = [name for name, has in ways.items() if has]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} are the same friction; give one of them")
    if params.back_efficiency is not None and params.efficiency is None:
        raise ValueError("back_efficiency is beside efficiency; give efficiency too")
    counts = {len(params.speeds), len(params.efficiencies), len(params.back_efficiencies or params.efficiencies)}
    if len(counts) > 1:
        raise ValueError("efficiencies, back_efficiencies and speeds are one table; give as many of each")
    if any(a >= b for a, b in pairwise(params.speeds)):
        raise ValueError("the speeds of efficiencies increase; sort them")


def friction(params: Params, speed: Numeric, transmitted: Numeric) -> Numeric:
    """M_T at this speed of the output, with this torque on it from the mesh."""
    forward, backward = params.per_load(speed)
    driving, driven = 1.0 / (1.0 + forward), 1.0 / (1.0 - backward)
    mean, half = 0.5 * (driving + driven), 0.5 * (driven - driving)
    direction = ops.clip(speed / params.creep_speed, -1.0, 1.0)
    dry = half * ops.abs(transmitted) + (1.0 - mean) * transmitted * direction
    if params.coulomb:
        share = ops.clip(transmitted / params.reversal_width, -1.0, 1.0) * direction
        dry = dry + params.coulomb * (mean - half * share)
    return dry * ops.smooth_sign(speed, params.creep_speed) + params.viscous * speed


def bend_rate(params: Params, speed: Numeric, bend: Numeric) -> Numeric:
    """ξ̇ at this speed of the input."""
    assert params.breakaway is not None
    slipping = ops.clip((ops.abs(bend) - SLIPS_FROM) / (1.0 - SLIPS_FROM), 0.0, STEEPEST)
    share = ops.where(speed * bend > 0.0, slipping, 0.0)
    return (speed - share * ops.abs(speed) * bend) / params.breakaway


def held(params: Params, speed: Numeric, transmitted: Numeric, bend: Numeric) -> Numeric:
    """The friction at the input with bristles bent by ξ; speed: of the input; transmitted: in the mesh."""
    forward, backward = params.per_load(speed / params.ratio)
    per_load = ops.where(transmitted * bend > 0.0, forward, backward)
    largest = params.coulomb / abs(params.ratio) + per_load * ops.abs(transmitted)
    within = ops.clip(bend, -1.0, 1.0)  # whatever a step that is too long makes of it
    damping = params.bristle_time * bend_rate(params, speed, within) if params.bristle_time else 0.0
    return largest * ops.clip(within + damping, -1.0, 1.0)


def build(params: Params) -> BondGraph:
    return assembled(params)


def assembled(params: Params, output: str = "rotational", input_inertia: float = 0.0) -> BondGraph:
    """The graph of a stage whose output is a shaft or, translational, a carriage: with force, velocity and mass in
    place of torque, speed and inertia. input_inertia: of the shaft of its input [kg m²]."""
    elastic = not ops.is_infinite(params.stiffness)
    graph = BondGraph(ports={"input": "mesh.input" if elastic else "torque", "output": "output"})
    graph.junction("torque", "0")
    graph.junction("output", "1")
    graph.add("ratio", TF("rotational", output, 1.0 / params.ratio))
    graph.chain("torque", "ratio", "output")
    if elastic:
        mesh = shaft.Params(params.stiffness, params.damping, params.backlash, model=params.backlash_model)
        graph.include("mesh", shaft.build(mesh))
        graph.bond("mesh.output", "torque")
    if input_inertia or params.breakaway is not None:  # the input is a junction of its own
        graph.junction("input", "1")
        graph.bond("input", graph.ports["input"])
        graph.ports["input"] = "input"
    if input_inertia:
        graph.add("input_inertia", I("rotational", input_inertia))
        graph.bond("input", "input_inertia")
    if params.inertia:
        graph.add("inertia", I(output, params.inertia))
        graph.bond("output", "inertia")
    if params.breakaway is not None:
        _add_bristles(graph, params)
        if params.viscous:
            graph.add("viscous", R(output, params.viscous))
            graph.bond("output", "viscous")
    elif params.grows_with_load:
        law = Law(lambda w, torque: friction(params, w, params.ratio * torque), ("flow", "torque.effort"))
        graph.add("friction", R(output, law))
        graph.bond("output", "friction")
    elif params.coulomb or params.viscous:
        law = Law(lambda w: params.coulomb * ops.smooth_sign(w, params.creep_speed) + params.viscous * w, ("flow",))
        graph.add("friction", R(output, law))
        graph.bond("output", "friction")
    return graph


def _add_bristles(graph: BondGraph, params: Params) -> None:
    """Between the input shaft and the housing."""
    signals = ("input.flow", "torque.effort", "bend.effort")
    graph.add("stiction", R("rotational", Law(partial(held, params), signals)))
    graph.bond("input", "stiction")
    graph.add("bending", Sf("signal", Law(partial(bend_rate, params), ("input.flow", "bend.effort"))))
    graph.add("bend", C("signal", 1.0))
    graph.junction("bristles", "0")
    graph.chain("bending", "bristles", "bend")
