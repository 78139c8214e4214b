"""Drivers: one folder per family of hardware, and `sim`, the simulated motors.

A folder's `load(joints, index, rig)` returns a `cosim.types.Driver`; a rig names the folder.
"""
