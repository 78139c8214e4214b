"""What turns a requested effort into an effort on a joint; one file per kind.

A module has `Params` and `load(params) -> Actuator`. The rig names it: `actuator: {type: <module>, …}`.
"""
