"""A command that is not finite is recorded as it was commanded, whatever limits would make of it, in every engine."""

import numpy as np
import pytest

from cosim import open_recording
from cosim.rig.run.run import StoppedRun
from tests.kit.rigs import rig_in

RIG = """
name: one
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: a, axis: [0, 1, 0], mass: 1 kg, inertia: [0.1, 0.1, 0.1]}]
joints: {a: {limits: {effort: 5, lower: -2, upper: 2, actions: {position: saturate}}}}
controllers: [{type: own.py}]
schedule: {duration: 100 ms}
"""
OWN = """
from cosim.plugin import ops
from cosim.plugin import COMMAND, FEEDBACK, joint_signals, params

@params
class Params:
    pass

class Own:
    params, inputs, outputs = Params(), joint_signals(FEEDBACK, 1), joint_signals(COMMAND, 1)

    def initial(self):
        return {{}}

    def update(self, t, p, x, u):
        rest = ops.zeros(1)
        {python}
        bad = ops.where(t >= 0.05, {bad}, 0.0) + rest
        return {{}}, {{name: bad if name == "{field}" else rest + {kp} * (name == "kp") for name in COMMAND}}

def load(params, context):
    return Own()
"""
READS = 'float(u["position"][0])'  # cannot be compiled


BAD = {  # (field, value, effort that is recorded)
    "nan": ("effort", "float('nan')", np.nan),
    "inf": ("effort", "float('inf')", np.inf),
    "-inf": ("effort", "-float('inf')", -np.inf),
    "position": ("position", "float('inf')", np.inf),
}
# each value in machine code, and each engine
CASES = [("compiled", bad) for bad in BAD] + [("Python controller", "-inf"), ("interpreted", "position")]


@pytest.mark.parametrize(("engine", "bad"), CASES)
def test_what_is_not_finite_is_recorded_as_it_was_commanded(tmp_path, engine, bad):
    field, value, recorded = BAD[bad]
    python = READS if engine == "Python controller" else "pass"
    own = OWN.format(python=python, bad=value, field=field, kp=2.0)
    rig = rig_in(tmp_path, RIG, own=own, interpret=engine == "interpreted")
    with pytest.raises(StoppedRun, match=r"at tick 50 .*: joint 'a' is commanded an effort that is not") as stopped:
        rig.run(record=tmp_path / "r.mcap")
    run = stopped.value.run
    for each in (run, open_recording(tmp_path / "r.mcap")):
        assert len(each.t) == 51
        np.testing.assert_array_equal(each["a/command_effort"][-2:], [0.0, recorded])
    assert np.isfinite(run["a/position"]).all()  # the motor never got it
