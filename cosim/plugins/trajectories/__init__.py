"""Trajectories of joints as pure functions of time; one file per type.

A module has `Params`, the keys of its section in a rig, and
`load(params, joints, folder, start) -> Trajectory`, where `joints` are the names of the n joints,
`folder` is the folder of the rig file and `start` (n,) are the joints' initial positions.
"""
