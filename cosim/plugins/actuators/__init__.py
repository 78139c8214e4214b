"""Actuator models, from a requested effort to an effort on a joint; one file per type.

A module has `Params` and `load(params) -> Actuator`. The rig names it: `actuator: {type: <module>, …}`.
"""
