"""A DC motor with drive electronics and a gear: the component of bond graphs of the same name, on a joint."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache

from cosim.core import ops
from cosim.mechanics.bondgraph.components import dc_motor
from cosim.mechanics.bondgraph.graph import BondGraph, built
from cosim.plugins.actuators._graph_actuator import JOINT, TORQUES, GraphActuator

Params = dc_motor.Params
DIFFERENT = 64  # motors of which the graphs are kept


def load(params: Params) -> GraphActuator:
    """Motors with the same parameters share their graph."""
    if any(ops.is_symbolic(getattr(params, field.name)) for field in fields(params)):
        return _assembled(params)
    return _kept(params)


def _assembled(params: Params) -> GraphActuator:
    graph = BondGraph()
    graph.include("motor", built(dc_motor.build, params))
    graph.bond("motor.joint", JOINT)
    moving = {"motor.inertia.flow": 1.0} if params.elastic else {}
    recorded = {name.removeprefix("motor."): name for name in graph.signals}
    motor = GraphActuator(params, graph, recorded | {"gear_torque": f"{JOINT}.effort"}, moving)
    motor.outputs = {**motor.outputs, **TORQUES}
    del motor.moves  # its parameters are in the units of the joint, rotational or linear
    return motor


_kept = lru_cache(maxsize=DIFFERENT)(_assembled)
