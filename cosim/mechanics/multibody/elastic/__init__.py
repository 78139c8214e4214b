"""Elastic links: mode shapes of beams, tables and finite elements, and the constants of the sweeps that follow."""
