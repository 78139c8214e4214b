"""A compiled rig as an FMU, a unit of co-simulation that other programs run without cosim."""
