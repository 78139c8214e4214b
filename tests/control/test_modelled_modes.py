"""Controllers with the modes of elastic links from the model: what they know, how they track, what they refuse."""

from pathlib import Path

import numpy as np
import pytest

from cosim.apps.analysis.linearisation import linearise
from cosim.apps.analysis.loops import is_stable
from cosim.core.errors import CosimError
from cosim.rig.rig import Rig
from tests.control.elastic_arms import two_link_arm
from tests.kit.refusals import raised
from tests.kit.rigs import rig_in

ARM = """
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {{name: arm, joint: hub, axis: [0, 0, 1]}}
    - {{name: motor, type: fixed, parent: arm, mass: 1 kg, inertia: [0.1, 0.1, 0.1]}}
    - {{name: load, type: fixed, parent: arm, origin: {{xyz: [0.8, 0, 0]}}, mass: 0.5 kg, inertia: [2e-4, 2e-4, 2e-4]}}
  elastic:
    - link: arm
      beam:
        length: 0.8 m
        section: {{shape: tube, diameter: 20 mm, wall: 1 mm}}
        density: 2700 kg/m^3
        youngs_modulus: 70 GPa
        modes: {{bend_y: {modes}}}
        tip_mass: 0.5 kg
        damping_ratio: 0.01
{rest}
schedule: {{step: 0.2 ms, duration: 1 s}}
"""
MOTION = "{type: quintic, goal: 60 deg, duration: 0.4 s}"
PRESCRIBED = f"joints: {{hub: {{prescribed: {MOTION}}}}}"
DRIVEN = """joints: {{hub: {{actuator: {{type: ideal}}}}}}
controllers: [{{type: {type}, joints: [hub], trajectory: {motion}, {keys}}}]"""
# commands a PD loop and shows what it knows of the first mode
WATCH = """
from cosim.plugin import COMMAND, REFERENCE, Signal, joint_signals, params


@params
class Params:
    pass


class Watch:
    def __init__(self, params, context):
        self.params, self.index = params, context.index
        own = joint_signals(REFERENCE, 1)
        self.inputs = {**own, **joint_signals(("all_position", "all_velocity"), context.model.nv)}
        self.outputs = joint_signals(COMMAND, 1)
        self.signals = {"bend": Signal((), "m"), "rate": Signal((), "m/s")}
        self.mode = context.model.dof_names.index("arm.bend_y_1")

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        position, velocity = u["reference_position"], u["reference_velocity"]
        known = {"bend": u["all_position"][self.mode], "rate": u["all_velocity"][self.mode]}
        return x, known | {
            "position": position, "velocity": velocity, "effort": 0 * position, "kp": 0 * position + 100.0,
            "kd": 0 * position + 5.0,
        }


def load(params, context):
    return Watch(params, context)
"""
# feedforward of the arm as if it were rigid
RIGID = """
import numpy as np

from cosim.plugin import ops
from cosim.plugin import COMMAND, REFERENCE, PerJoint, joint_signals, param, params


@params
class Params:
    kp: PerJoint = param(min=0)
    kd: PerJoint = param(min=0)


class Rigid:
    def __init__(self, params, context):
        n = len(context.joints)
        self.params, self.index, self.model = params, context.index, context.model
        self.inputs, self.outputs = joint_signals(REFERENCE, n), joint_signals(COMMAND, n)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        rest, equations = np.zeros(self.model.nv), self.model.equations
        q, v, a = (ops.set_at(rest, self.index, u[name]) for name in list(u)[:3])
        effort = equations.inverse_dynamics(equations.coordinates(q), v, a)[self.index]
        return x, {
            "position": u["reference_position"], "velocity": u["reference_velocity"], "effort": effort,
            "kp": ops.array(p.kp), "kd": ops.array(p.kd),
        }


def load(params, context):
    return Rigid(params, context)
"""


@pytest.fixture
def rig_of(tmp_path: Path):
    def rig(rest: str, modes: int = 2, arm: str = ARM) -> Rig:
        return rig_in(tmp_path, arm.format(modes=modes, rest=rest), watch=WATCH, rigid=RIGID)

    return rig


def driven(type: str, keys: str) -> str:
    return DRIVEN.format(type=type, motion=MOTION, keys=keys)


@pytest.mark.parametrize(("period", "modes", "error"), [("0.2 ms", 2, 1e-4), ("2 ms", 4, 0.02)])
def test_the_modes_move_as_they_do_along_the_reference(rig_of, period: str, modes: int, error: float) -> None:
    moved = rig_of(PRESCRIBED, modes).run()
    known = rig_of(driven("watch.py", f"period: {period}"), modes).run()
    for shown, interface in {"bend": "position", "rate": "velocity"}.items():
        true = moved[f"arm.bend_y_1/{interface}"]
        held = known[f"watch/{shown}"]
        calls = np.flatnonzero(np.diff(known["watch/bend"], prepend=np.nan))
        np.testing.assert_allclose(held[calls], true[calls], atol=error * np.abs(true).max())
    # the arm itself is moved by a PD loop, and bends otherwise
    bend = known["arm.bend_y_1/position"]
    assert np.abs(bend - known["watch/bend"]).max() > 0.2 * np.abs(bend).max()


def test_measured_modes_are_those_of_the_arm(rig_of) -> None:
    run = rig_of(driven("watch.py", "modes: measured")).run()
    np.testing.assert_array_equal(run["watch/bend"][1:], run["arm.bend_y_1/position"][1:])


def test_the_modes_begin_where_they_hold_the_arm(rig_of) -> None:
    rest = driven("watch.py", "period: 0.2 ms").replace("goal: 60 deg", "goal: 0 deg")
    bend = rig_of(rest, arm=ARM.replace("[0, 0, 0]", "[0, -9.81, 0]", 1)).run()["watch/bend"]
    assert bend[0] < -1e-3
    np.testing.assert_allclose(bend, bend[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("type", "keys"), [("feedforward_pd", "kp: 100, kd: 5"), ("computed_torque", "bandwidth: 2 Hz")]
)
def test_the_elastic_model_tracks_better_than_a_rigid_one(rig_of, type: str, keys: str) -> None:
    def error(rest: str) -> float:
        run = rig_of(rest).run()
        return float(np.abs(run["hub/reference_position"] - run["hub/position"]).max())

    elastic, rigid = error(driven(type, keys)), error(driven("rigid.py", "kp: 100, kd: 5"))
    assert elastic < 0.1 * rigid


FED_BACK = "largest_position_error: 1 deg, largest_effort: 10 N*m, modes: reference, passive: {arm.bend_y_1: 0}"
REFUSED = {
    "fed back": driven("lqr", FED_BACK),
    "a controller of a joint": driven("pid", "kp: 1, ki: 1, kd: 1, modes: measured"),
    "an unknown source": driven("feedforward_pd", "kp: 1, kd: 1, modes: ideal"),
}
RIGID_ARM = """
mechanism: {{bodies: [{{name: arm, joint: hub, mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}}]}}
{rest}
"""


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_effect_is_refused(rig_of, what: str, said) -> None:
    said(raised(CosimError, lambda: rig_of(REFUSED[what]).run()))


def test_modes_of_a_rigid_mechanism_are_refused(rig_of) -> None:
    with pytest.raises(CosimError, match=r"controllers\[0\].modes: the mechanism has no elastic links; take it out"):
        rig_of(driven("feedforward_pd", "kp: 1, kd: 1, modes: reference"), arm=RIGID_ARM).run()


SOFT_ARM = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies: [{{name: arm, joint: hub}}]
  elastic: [{{link: arm, beam: {{length: 1 m, section: {{shape: rectangle, width: 6 mm, height: 40 mm}},
                               density: 2700 kg/m^3, youngs_modulus: 70000, modes: {{bend_y: 2}}}}}}]
{rest}
"""


def test_a_beam_that_cannot_carry_itself_has_no_equilibrium(rig_of, said) -> None:
    """Young's modulus in megapascals, read as pascals."""
    said(raised(CosimError, rig_of, driven("feedforward_pd", "kp: 1, kd: 1"), arm=SOFT_ARM))


def test_modes_that_a_regulator_feeds_back_are_measured(rig_of) -> None:
    """They settle sooner than with the joint held."""

    def left(rest: str) -> float:
        bend = rig_of(rest, 1).run()["arm.bend_y_1/position"]
        return float(np.abs(bend[-1000:]).max())

    keys = "largest_position_error: 2 deg, largest_effort: 20 N*m, largest_passive_error: 0.02"
    assert left(driven("lqr", keys + ", passive: {arm.bend_y_1: 0}")) < 0.1 * left(PRESCRIBED)


def test_a_two_link_arm_is_stable_and_tracks_better_than_with_a_rigid_model(rig_of) -> None:
    text = two_link_arm().replace("duration: 2 s", "duration: 1 s").replace("{", "{{").replace("}", "}}")

    def rig(type: str) -> Rig:
        return rig_of("", arm=text.replace("type: feedforward_pd", f"type: {type}"))

    def error(rig: Rig) -> float:
        run = rig.run()
        wrong = [run[f"{joint}/reference_position"] - run[f"{joint}/position"] for joint in ("shoulder", "elbow")]
        return float(np.abs(wrong).max())

    assert error(rig("feedforward_pd")) < 0.03 * error(rig("rigid.py"))
    assert is_stable(linearise(rig("feedforward_pd")))
    assert not is_stable(linearise(rig("feedforward_pd\n    modes: measured")))
