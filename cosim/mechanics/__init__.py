"""Equations of motion: multibody systems, bond graphs, their formulations and integrators."""
