"""Rigid-body mechanisms: description, joints, the O(n) sweeps, and `Model`."""

from cosim.multibody.model import Model

__all__ = ["Model"]
