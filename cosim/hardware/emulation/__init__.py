"""The simulated motors of a rig behind the protocols of their makers: motors, lines, what goes wrong, and the loop."""
