"""Derivations from a mechanism alone: its graph as text, matrices and picture."""
