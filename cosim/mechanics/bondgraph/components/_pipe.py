"""Laminar flow through a round pipe: Δp = 128 η l / (π d⁴) Q (Hagen and Poiseuille)."""

from __future__ import annotations

import math


def laminar_resistance(length: float, diameter: float, viscosity: float) -> float:
    """[Pa s/m³]"""
    return 128.0 * viscosity * length / (math.pi * diameter**4)
