"""Bond graphs: elements and junctions with power bonds, assembled to the equations of a pure block (after
Karnopp, Margolis and Rosenberg, System Dynamics).

A bond carries an effort e and a flow f, whose product is a power. A `BondGraph` is built from elements, junctions and
components; `assemble` finds its causality and its states, and sorts its equations.
"""

from cosim.mechanics.bondgraph.assembly import Assembly, assemble
from cosim.mechanics.bondgraph.elements import GY, IC, TF, C, Element, I, Law, R, Se, Sf
from cosim.mechanics.bondgraph.graph import BondGraph

__all__ = ["GY", "IC", "TF", "Assembly", "BondGraph", "C", "Element", "I", "Law", "R", "Se", "Sf", "assemble"]
