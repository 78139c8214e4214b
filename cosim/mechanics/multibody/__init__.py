"""Rigid-body mechanisms: description, joint table, O(n) sweeps, constraints, and `Model`."""

from cosim.mechanics.multibody.model import Model

__all__ = ["Model"]
