"""Numbers of a rig from a recording: `cosim identify`."""
