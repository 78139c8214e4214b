"""A controller that stays in Python in a compiled loop: what a tick costs beside the controller's own time."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks import paired_timing
from benchmarks.paired_timing import Budget, Samples
from benchmarks.robots import sample_rig
from benchmarks.rows import BenchCase, Measurement, Target
from cosim import load_rig
from cosim.core.errors import RunError
from cosim.core.units import format_seconds

# PD gains about a reference; the list keeps it in Python
CONTROLLER = """
import numpy as np
from cosim.plugin import COMMAND, FEEDBACK, REFERENCE, joint_signals, params


@params
class Params:
    pass


class Controller:
    def __init__(self, params, context):
        n = len(context.joints)
        self.params, self.seen = params, [0.0]
        self.inputs, self.outputs = joint_signals((*REFERENCE, *FEEDBACK), n), joint_signals(COMMAND, n)
        self.none, self.kp, self.kd = np.zeros(n), np.full(n, 2000.0), np.full(n, 200.0)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        self.seen[0] = float(u["position"][0])
        q, v = u["reference_position"], u["reference_velocity"]
        return {}, {"position": q, "velocity": v, "effort": self.none, "kp": self.kp, "kd": self.kd}


def load(params, context):
    return Controller(params, context)
"""


def python_controller(budget: Budget) -> Measurement:
    path = sample_rig()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "in_python.py")
        file.write_text(CONTROLLER)
        rig = load_rig(path, [f"controllers=[{{name: arm, type: {file}}}]"], interpret=False)
    if rig.native or not rig.looped:
        raise RunError("the controller of this row is not in Python", str(path))
    engine, (loop,) = rig.engine(), rig.tick_model.loops
    u = {name: np.zeros(signal.shape) for name, signal in loop.block.inputs.items()}

    def ours(n: int) -> None:
        rows, stopped = engine.run(n)
        if stopped or len(rows) < n:
            raise RunError(f"the rig stopped while it was timed: {stopped}", str(path))

    def own(n: int) -> None:
        update, params = loop.block.update, loop.block.params
        for _ in range(n):
            update(0.0, params, {}, u)

    ours(1)  # the first block of an engine makes its ring, and would pass for a tick that takes milliseconds
    samples = paired_timing.time_pairs(ours, own, budget)
    assert samples.other is not None
    note = f"the controller's own {format_seconds(float(np.median(samples.other)))} are subtracted"
    return Measurement(Samples(samples.ours - samples.other), note=note)


CASES = (
    BenchCase(
        "tick python controller",
        "a tick of ur5_sim with a controller in Python, without the controller's own time",
        python_controller,
        target=Target("ours", 20.0, at_most=True),
    ),
)
