"""Robotics control co-simulation with hardware in the loop: rigs compiled to machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosim.multibody import Model
    from cosim.rig import Rig, load_rig
    from cosim.rig.run import Run

__all__ = ["Model", "Rig", "Run", "load_rig"]

_HOMES = {"Model": "cosim.multibody", "Rig": "cosim.rig", "Run": "cosim.rig.run", "load_rig": "cosim.rig"}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import cosim` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cosim' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
