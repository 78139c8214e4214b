"""References of joints as pure functions of time: one kind per file of this package.

A kind has `Params`, the keys of its section in a rig, and
`load(params, joints, folder, start) -> Trajectory`, where `joints` names the n joints, `folder` is that
of the rig file and `start` (n,) holds the joints' initial positions.
"""
