"""Rigs for the tests of this folder: the samples, and small ones written on the spot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from cosim import Rig, load_rig
from cosim.drivers import sim
from cosim.execution.engine import PythonEngine
from cosim.tick.virtual_plant import VirtualPlant

SAMPLES = Path(__file__).parents[2] / "rigs"

# a controller whose command is the expression `effort`, of the one joint it has; its state `n` counts its calls
PUSH = """
import math
import numpy as np
from cosim import ops
from cosim.types import COMMAND, FEEDBACK, joint_signals, param, params

@params
class Params:
    size: float = param(default=1.0)

class Push:
    def __init__(self, params, context):
        self.params, self.seen = params, []
        self.inputs = joint_signals(FEEDBACK, 1)
        self.outputs = joint_signals(COMMAND, 1)

    def initial(self):
        return {{"n": np.zeros(1)}}

    def update(self, t, p, x, u):
        n, q, v = x["n"], u["position"], u["velocity"]
        {lines}
        rest = ops.zeros(1)
        command = {{"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}}
        return {{"n": n + 1.0}}, command

def load(params, context):
    return Push(params, context)
"""


@pytest.fixture
def sample() -> Callable[..., Rig]:
    """A sample rig by its name, after overrides."""

    def load(name: str, *overrides: str, interpret: bool = False) -> Rig:
        return load_rig(SAMPLES / f"{name}.yaml", overrides, interpret)

    return load


@pytest.fixture
def rig_of(tmp_path: Path) -> Callable[..., Rig]:
    """A rig from its text; `push` becomes the body of the controller `push.py` beside it."""

    def load(text: str, *overrides: str, push: str = "effort = ops.array([p.size])", interpret: bool = False) -> Rig:
        (tmp_path / "rig.yaml").write_text(dedent(text))
        (tmp_path / "push.py").write_text(PUSH.format(lines=push.replace("\n", "\n        ")))
        return load_rig(tmp_path / "rig.yaml", overrides, interpret)

    return load


@pytest.fixture
def python_loop() -> Callable[[Rig, int], np.ndarray]:
    """All signals (k, n) of the first k ticks of a rig, by the Python loop around the simulated drivers."""

    def run(rig: Rig, ticks: int) -> np.ndarray:
        world = VirtualPlant(rig.tick_model)
        index = np.arange(rig.tick_model.nv)
        driver = sim.load(rig.joints, index, rig.limits, world)
        engine = PythonEngine(rig.tick_model, world, [(driver, index)])
        engine.open()
        engine.arm()
        rows, _ = engine.run(ticks)
        return rig.observe(engine.view("arming"), rows)

    return run
