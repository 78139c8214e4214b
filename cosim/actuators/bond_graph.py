"""An actuator written as a bond graph in the rig file (theory §8).

The graph bonds to `joint`, which has the motion of the joint. Its laws may use the inputs `request`, `position` and
`velocity` of the joint. `signals` names what is recorded: {current: winding.flow}.
"""

from __future__ import annotations

from cosim.actuators._graph_actuator import GraphActuator
from cosim.bondgraph.graph import BondGraph, GraphError
from cosim.errors import SectionError
from cosim.types import param, params


@params
class Params:
    graph: BondGraph = param(doc="its elements, junctions, components and bonds")
    signals: dict = param(default=None, doc="recorded signals: name -> `<element>.effort`, `.flow`, `.displacement`")


def load(params: Params) -> GraphActuator:
    try:
        return GraphActuator(params, params.graph, params.signals or {})
    except GraphError as error:
        raise SectionError(error.what, ("graph", *error.keys)) from None
