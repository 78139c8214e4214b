"""A mechanism as a robot file for other programs: URDF, MJCF, SDF."""
