"""The feedforward against cogging, in commands of real joints only."""

import json
import math

import numpy as np
import pytest

from cosim.control.cogging import Cogging, cogging_effort
from cosim.core.errors import InputErrors
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from tests.commissioning.lockstep import arm
from tests.kit.refusals import raised

KEYS = {"period": "60 deg", "cosine": [0.1], "sine": [0.0, "20 mN*m"]}


def test_the_effort_is_the_sum_of_its_harmonics():
    one = Cogging(period=2.0, cosine=(0.1, 0.2), sine=(0.3,))
    q = 0.37
    phase = math.pi * q
    expected = 0.1 * math.cos(phase) + 0.2 * math.cos(2 * phase) + 0.3 * math.sin(phase)
    assert one.effort(q) == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(cogging_effort((None, one), np.array([1.0, q])), [0.0, expected], rtol=1e-14)


def rig_of(folder, interpret: bool, **changes) -> Rig:
    path = folder / "rig.yaml"
    path.write_text(json.dumps(arm(**changes)))
    return Rig(read_rig(path), interpret=interpret)


@pytest.mark.parametrize("interpret", [True, False])
def test_it_is_added_to_commands_of_real_joints_before_the_guard(interpret, tmp_path):
    rig = rig_of(tmp_path, interpret, **{"joints.elbow.cogging": KEYS})
    model = rig.tick_model
    position = np.array([0.2, 0.5])
    given = {"position": position, "temperature": np.full(2, np.nan)}
    inputs = [given.get(name, np.zeros(2)) for name in model.guard_inputs]
    initial = model.initial()
    state, start = model.plant.layout.pack(initial["plant"]), np.asarray(initial["bumpless_start"])
    commands = model.check_command(0.0, state, start, np.zeros(2), *inputs, [])
    effort = np.asarray(commands[2], dtype=float)
    u = float(rig.spec.joints["elbow"].cogging.effort(0.5))
    np.testing.assert_allclose(effort, [0.0, u], rtol=1e-12)


def test_simulated_joints_ignore_it(tmp_path):
    data = arm(**{"joints.elbow.cogging": KEYS})
    del data["drivers"]
    path = tmp_path / "rig.yaml"
    path.write_text(json.dumps(data))
    assert Rig(read_rig(path), interpret=True).tick_model.coggings == ()


@pytest.mark.parametrize("keys", [{"period": "60 deg"}, {"period": 0, "sine": [0.1]}], ids=["no harmonics", "period"])
def test_bad_input(keys, tmp_path, said):
    said(raised(InputErrors, rig_of, tmp_path, True, **{"joints.elbow.cogging": keys}))
