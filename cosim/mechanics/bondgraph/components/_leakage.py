"""Leakage through narrow gaps: Q = G Δp, laminar. A gap without flow, G = 0, is one too."""

from __future__ import annotations

from typing import Any

from cosim.core.types import param
from cosim.mechanics.bondgraph import Element, Law, R


def conductance() -> Any:
    return param(unit="m^3/s/Pa", min=0, default=0.0, doc="internal leakage per pressure")


def leakage(conductance: float) -> Element:
    """conductance: G [m³/s/Pa]."""
    return R("hydraulic", Law(lambda drop: conductance * drop, ("effort",)))
