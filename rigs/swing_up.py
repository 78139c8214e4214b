"""Swings a pendulum up by its energy, then balances it: an example of a controller of your own.

Far from upright the motor pushes along the motion while the energy is below that of standing upright, and
against it above (Åström and Furuta, Swinging up a pendulum by energy control, 2000). Once the pendulum comes
close enough to upright a PD law takes over for good.

`update` is a pure function of plain operators and `cosim.plugin.ops`, so it becomes machine code with the rest of
the rig. That is why choices are `ops.where` instead of `if`, and why the memory, whether the pendulum has
been caught, is a state that goes in and comes out.
"""

from cosim.plugin import COMMAND, joint_signals, ops, param, params


@params
class Params:
    """The keys of the controller in the rig, with their units and bounds."""

    pump: float = param(unit="1", above=0, doc="effort per missing energy, N·m/J")
    kp: float = param(unit="N*m/rad", min=0, doc="effort per sine of the angle from upright, once caught")
    kd: float = param(unit="N*m*s/rad", min=0, doc="effort per velocity, once caught")
    catch: float = param(unit="rad", above=0, doc="angle from upright at which the PD law takes over")


class SwingUp:
    def __init__(self, params, context):
        self.params = params
        self.inputs = joint_signals(("reference_position", "position", "velocity"), 1)
        self.outputs = joint_signals(COMMAND, 1)
        self._model = context.model.equations

    def initial(self):
        return {"caught": ops.zeros(1)}

    def update(self, t, p, x, u):
        """(next state, command): called once per period with the parameters, the state and the measurements."""
        q, v, upright = u["position"], u["velocity"], u["reference_position"]
        rest = ops.zeros(1)
        energy = self._model.kinetic_energy(q, v) + self._model.potential_energy(q)
        missing = self._model.potential_energy(upright) - energy
        swing = p.pump * missing * ops.smooth_sign(v, 0.01)
        hold = p.kp * ops.sin(upright - q) - p.kd * v
        close = ops.abs(ops.sin(upright - q)) < ops.sin(p.catch)
        above = ops.cos(upright - q) > 0.0
        caught = ops.where(ops.logical_and(close, above), 1.0, x["caught"])
        effort = ops.where(caught > 0.0, hold, swing)
        command = {"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}
        return {"caught": caught}, command


def load(params, context):
    return SwingUp(params, context)
