"""Rigs: from a YAML file to a wired simulation.

source (YAML with places) → schema (dataclasses as the only schema) → spec, with one file per section (joints,
controllers, schedule) and plugins (sections that name a module) → rig (wired, ready to run).
"""

from cosim.rig.rig import Rig, load_rig

__all__ = ["Rig", "load_rig"]
