"""Drivers: one folder per family of hardware, and `sim`, the simulated motors.

A folder's `load(joints, index, limits, world)` returns a `cosim.types.Driver`; a rig names the folder. `world` is the
simulated part of the rig, which hardware has no use for.
"""
