"""MJCF files: what MuJoCo's own compiler makes of them, with the optional package `mujoco`."""
