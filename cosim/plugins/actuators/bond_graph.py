"""An actuator written as a bond graph in the rig file.

The graph bonds to `joint`, which has the motion of the joint. Its laws may use the inputs `request`, `position` and
`velocity` of the joint. A graph of several joints, a section of `bond_graphs`, bonds to each of them by its name and
takes the inputs `arm.request` and so on. `signals` names what is recorded: {current: winding.flow}; the `signals` of
the graph itself, laws with a unit, are recorded too.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from cosim.core.errors import SectionError
from cosim.core.types import ACTUATOR_OUTPUTS, param, params
from cosim.mechanics.bondgraph import power_account
from cosim.mechanics.bondgraph.graph import BondGraph, GraphError, SignalError
from cosim.plugins.actuators._graph_actuator import ONE_JOINT, GraphActuator


@params
class Params:
    graph: BondGraph = param(doc="its elements, junctions, components and bonds")
    signals: dict = param(default=None, doc="recorded: name -> `<element>.effort`, `.flow`, `.displacement`, `.energy`")


def load(params: Params) -> GraphActuator:
    """Raises SectionError for a graph that cannot be, and for signals under names that are taken."""
    return _assembled(params, ONE_JOINT)


def load_shared(params: Params, joints: Sequence[str]) -> GraphActuator:
    """The drive of several joints, by their names in the graph; raises as `load` does."""
    return _assembled(params, {name: f"{name}." for name in joints})


def with_losses(graph: BondGraph) -> BondGraph:
    """The graph with the losses by part, where elements have one."""
    parts = power_account.losses_by_part(graph, lambda *_: "")
    if not parts:
        return graph
    found = copy.deepcopy(graph)
    power_account.add_losses(found, parts)
    return found


def _assembled(params: Params, joints: Mapping[str, str]) -> GraphActuator:
    """Raises SectionError for a graph that cannot be, and for signals under names that are taken."""
    graph = with_losses(params.graph)
    own = {name: name for name in graph.signals if "." not in name}
    signals = params.signals or {}
    for name, signal in {**own, **signals}.items():
        place = ("signals", name) if name in signals else ("graph", "signals", name)
        if name in ACTUATOR_OUTPUTS or (name in own and name in signals):
            raise SectionError("there is an output of this name already; give the signal another one", place)
        if not isinstance(signal, str):
            raise SectionError("expected the name of a signal, such as winding.flow", place)
    try:
        return GraphActuator(params, graph, {**own, **signals}, joints=joints)
    except SignalError as error:
        name = next(name for name, signal in signals.items() if signal == error.signal)
        raise SectionError(error.what, ("signals", name)) from None
    except GraphError as error:
        shared = joints is not ONE_JOINT and error.element in joints
        place = ("joints", error.element) if shared else ("graph", *params.graph.place_of(error))
        raise SectionError(error.what, place) from None
