"""An arm of two links with a disturbance that its controllers do not know, for tests of controllers in a loop."""

from pathlib import Path

from cosim import Rig
from tests.kit.rigs import rig_in

# an effort on the second joint: a constant part from 0.5 s on, and a sine
DISTURBANCE = """
import math
from cosim.plugin import ops
from cosim.plugin import ForceLaw
from cosim.plugin import param, params

@params
class Params:
    step: float = param(default=0.0)
    size: float = param(default=0.0)
    frequency: float = param(default=1.0)

def load(params):
    def efforts(frames, q, v, t):
        sine = params.size * ops.sin(2.0 * math.pi * params.frequency * t)
        return [ops.where(t > 0.5, params.step, 0.0) + sine]
    return ForceLaw(efforts=efforts, timed=True)
"""
ARM = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {{name: upper, joint: shoulder, axis: [0, 0, 1], mass: 3 kg, com: [0.25, 0, 0], inertia: [0.01, 0.05, 0.05]}}
    - {{name: fore, parent: upper, joint: elbow, axis: [0, 0, 1], origin: {{xyz: [0.5, 0, 0]}}, mass: 2 kg,
       com: [0.2, 0, 0], inertia: [0.01, 0.03, 0.03]}}
  forces: [{{type: disturbance.py, name: push, joints: [elbow], known: false, params: {disturbance}}}]
joints:
  all: {{actuator: {{type: ideal}}, limits: {{effort: {effort}}}{more}}}
  shoulder: {{initial: {{position: -30 deg}}}}
  elbow: {{initial: {{position: 50 deg}}}}
controllers:
  - {controller}
schedule: {{step: 1 ms, duration: {duration} s, integrator: rk4}}
"""
MOTION = "trajectory: {type: quintic, goal: [20 deg, -40 deg], duration: 0.8 s}"


def arm(
    folder: Path,
    controller: str,
    disturbance: str = "{}",
    effort: str = "200",
    duration: float = 2.0,
    more: str = "",
    interpret: bool = False,
) -> Rig:
    """controller: its keys as a mapping; disturbance: its parameters; effort: limit of the joints [N m]."""
    text = ARM.format(controller=controller, disturbance=disturbance, effort=effort, duration=duration, more=more)
    return rig_in(folder, text, interpret=interpret, disturbance=DISTURBANCE)
