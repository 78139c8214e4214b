"""The simulated plant as drivers see it: measured once per tick, moved only by motors that are on."""

import numpy as np

from cosim.core.errors import RunError
from cosim.core.types import JointCommand, JointState
from cosim.plugins.drivers import sim
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.refusals import raised
from tests.kit.rigs import rig_in

RIG = """
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: b, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
"""


def test_a_plant_is_measured_once_per_tick_however_often_it_is_read(tmp_path):
    plant = VirtualPlant(rig_in(tmp_path, RIG, "joints.a={encoder: {noise: 0.1}}").tick_model)
    first = [values.copy() for values in plant.measure()]
    np.testing.assert_array_equal(plant.measure(), first)
    plant.advance()
    np.testing.assert_array_equal(plant.measure(), first)
    plant.begin(1_000_000)
    assert plant.measure()[0][0] != first[0][0]


def test_motors_move_only_when_enabled_and_a_stopped_one_commands_no_effort(tmp_path, said):
    plant = VirtualPlant(rig_in(tmp_path, RIG).tick_model)
    driver = sim.load(("a", "b"), np.array([0, 1]), None, plant)
    command = JointCommand.zeros(2)
    command.effort[:] = [1.0, 2.0]

    def refused(what, *arguments):
        said(raised(RunError, what, *arguments))

    driver.open()
    driver.read(JointState.zeros(2), 0)
    refused(driver.write, command, 0)
    refused(driver.enable, "torque")
    driver.enable("effort")
    driver.write(command, 0)
    assert plant.view("request").tolist() == [1.0, 2.0]
    for _ in range(2):
        driver.stop()
        assert plant.view("request").tolist() == [0.0, 0.0]
    refused(driver.write, command, 0)
