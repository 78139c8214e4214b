"""Rigs: from a YAML file to a wired simulation and its runs.

`reading` has YAML with places and the schemas, `sections` a file per section of a rig, `wiring` makes its parts, `rig`
holds them, ready to run, and `run` is what comes of it.
"""
