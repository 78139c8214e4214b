"""Rigs: from a YAML file to a wired simulation.

source (YAML with places) → schema (dataclasses as the only schema) → spec, with one file per section (joints,
controllers, schedule) and plugins (sections that name a module) → rig (wired, ready to run).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosim.rig.rig import Rig, load_rig

__all__ = ["Rig", "load_rig"]


def __getattr__(name: str) -> Any:
    """Imported at the first use, so that a part of the room stays light."""
    if name not in __all__:
        raise AttributeError(f"module 'cosim.rig' has no attribute '{name}'")
    from cosim.rig import rig

    return getattr(rig, name)
