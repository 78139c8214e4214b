"""The simulated motors of a rig behind the protocols of their drives: motors, connections, fault injection, server."""
