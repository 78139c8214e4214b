"""Feedback of several drivers together: first samples, late ones, and load motors."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.control.plausibility import JUMP_TIME, is_stale, jumped, longest_span, shaft_slips
from cosim.core.errors import RunError
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.hardware.manager import FIRST_READS, HardwareManager
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.hardware import HardwareStub

MS = 1_000_000  # ns
BENCH = Path(__file__).parents[2] / "rigs" / "dynamometer"


class Reporting(HardwareStub):
    """A drive whose samples are set by a test; it reports none to its first `silent` reads."""

    modes = frozenset({"effort"})
    limits = None

    def __init__(self, silent=0, joints=("elbow",)):
        self.joints = joints
        self.silent, self.sample = silent, (0, 0.0, 0.0)  # t_ns, position, velocity
        self.fault = 0

    def enable(self, mode):
        return None

    def read(self, out, deadline_ns):
        self.silent -= 1
        out.fault[:] = self.fault
        if self.silent < 0 and self.sample[0]:
            out.t_ns, out.position[:], out.velocity[:] = self.sample

    def write(self, cmd, deadline_ns):
        return None

    def stop(self):
        return None


@pytest.fixture(scope="module")
def dynamometer():
    return load_rig(BENCH / "elbow.yaml")


@pytest.fixture
def bench(dynamometer):
    """(manager, motor under test, load motor)."""
    plant = VirtualPlant(dynamometer.tick_model)
    motor, load = Reporting(), Reporting()
    index = np.array([dynamometer.joints.index("elbow")])
    groups = [DriverGroup(motor, index, real=True), DriverGroup(load, np.array([0]), real=True, load=True)]
    return HardwareManager(groups, plant), motor, load


def read(manager, at_ns):
    manager.read(at_ns, lambda: at_ns, at_ns)


def test_the_wait_for_one_drive_makes_the_sample_of_another_no_older(bench):
    manager, motor, load = bench
    motor.silent = 6
    motor.sample = load.sample = (1000 * MS, 0.1, 0.0)
    manager.measure_once(1005 * MS)
    assert manager._memories[0].state.position[0] == 0.1


def test_no_two_threads_use_a_driver_while_it_is_held(bench):
    manager, motor, load = bench
    busy, found, read_sample = threading.Lock(), [], motor.read

    def slow(out, deadline_ns):
        found.append(busy.acquire(blocking=False))
        time.sleep(1e-3)  # in which another thread may come
        read_sample(out, deadline_ns)
        if found[-1]:
            busy.release()

    motor.read = slow
    run = manager.begin_hold()
    thread = threading.Thread(target=run)
    thread.start()
    manager.enable()
    for k in range(20):
        motor.sample = load.sample = ((1000 + k) * MS, 0.1, 0.0)
        manager.measure_once((1005 + k) * MS)
    manager.end_hold()
    thread.join()
    assert len(found) > 20 and all(found)


def test_each_drive_must_report_before_the_first_command(bench):
    manager, motor, load = bench
    motor.sample = (1000 * MS, 0.1, 0.0)
    with pytest.raises(RunError, match=r"^the drives of elbow report no position; check their power and their bus$"):
        manager.measure_once(1005 * MS)
    load.sample = (1000 * MS, 0.1, 0.0)
    motor.sample = (1020 * MS, 0.1, 0.0)
    manager.measure_once(1025 * MS)
    with pytest.raises(RunError, match="report no position"):
        manager.measure_once(1030 * MS)  # these samples were there before


def sampled(bench, *rows):
    """Read samples of the motor under test: (time [ms], position)."""
    manager, motor, load = bench
    for at, position in rows:
        motor.sample, load.sample = (at * MS, position, 0.0), (at * MS, 0.0, 0.0)
        read(manager, at * MS)


def stopped(bench, *rows):
    with pytest.raises(RunError) as caught:
        sampled(bench, *rows)
    return str(caught.value)


def test_a_silent_load_motor_stops_the_run_by_the_shortest_limit(bench, said):
    """… which is its joint's: simulated joints have none."""
    manager, motor, load = bench
    load.sample, at = (1000 * MS, 0.0, 0.0), 1020 * MS
    motor.sample = (at, 0.0, 0.0)
    read(manager, at)
    motor.sample = (at + 1, 0.0, 0.0)
    with pytest.raises(RunError) as caught:
        read(manager, at + 1)
    said(caught.value)


@pytest.fixture(scope="module")
def two_shafts():
    """Two joints under test, whose load motors share a driver."""
    load = "{id: 3, ratio: 9, torque_constant: 0.1, effort: 8, inertia: 0.005}"
    wired = ["drivers.test.joints.shoulder={id: 4, ratio: 9}", f"drivers.load.loads.shoulder={load}"]
    return load_rig(BENCH / "elbow.yaml", [*wired, "schedule.step=2 ms"])


@pytest.mark.parametrize("limits", [(0.010, 0.030), (0.030, 0.010)], ids=str)
def test_load_motors_on_one_driver_have_the_smallest_limit_of_its_joints(two_shafts, monkeypatch, limits, said):
    guard = replace(two_shafts.tick_model.guard, stale=np.array(limits))
    monkeypatch.setattr(two_shafts.tick_model, "guard", guard)
    motor, load = Reporting(joints=("shoulder", "elbow")), Reporting(joints=("shoulder", "elbow"))
    index = np.arange(2)
    groups = [DriverGroup(motor, index, real=True), DriverGroup(load, index, real=True, load=True)]
    manager = HardwareManager(groups, VirtualPlant(two_shafts.tick_model))
    load.sample = (1000 * MS, 0.0, 0.0)
    motor.sample = (1010 * MS, 0.0, 0.0)
    read(manager, 1010 * MS)
    motor.sample = (1020 * MS, 0.0, 0.0)  # later than the smaller limit, earlier than the larger one
    with pytest.raises(RunError) as caught:
        read(manager, 1020 * MS)
    said(caught.value)


def test_a_step_after_late_feedback_is_judged_over_the_time_that_it_spans(bench):
    """A sample may be as old as the one before it: the joint, at up to 8 rad/s, moved during all of a stall."""
    sampled(bench, (1000, 0.0), (1001, 0.005), (1031, 0.01), (1032, 0.24), (1033, 0.245))


@pytest.mark.parametrize("stall", [0, 30])
def test_a_step_that_no_late_feedback_explains_is_one_of_the_encoder(bench, stall, said):
    said(stopped(bench, (1000, 0.0), (1001, 0.005), (1002 + stall, 0.01), (1003 + stall, 0.4)))


@pytest.mark.parametrize(("after", "named"), [(0, True), (900, True), (1100, False)])
def test_late_feedback_is_named_for_a_second(bench, after, named):
    steps = [(1000, 0.0), (1030, 0.0), *((at, 0.0) for at in range(1031, 1031 + after)), (1031 + after, 0.4)]
    fault = stopped(bench, *steps)
    assert (f"its feedback was late, {1 + after} ms before, 30 ms after the sample" in fault) is named
    assert fault.endswith("check its encoder and its supply")


def test_a_load_motor_whose_velocity_is_no_number_stops_the_run(bench):
    manager, motor, load = bench
    motor.sample, load.sample = (1000 * MS, 0.0, 0.0), (1000 * MS, 0.0, np.nan)
    with pytest.raises(RunError, match=r"^the load motor of 'elbow' turns at nan rad/s, the joint at 0 rad/s; check"):
        read(manager, 1000 * MS)


def test_the_shaft_slips_beyond_its_limit_and_a_joint_without_velocity_is_left_to_the_guard():
    load, joint = np.array([1.1, 1.1001, np.nan, 0.0, np.inf]), np.array([0.0, 0.0, 0.0, np.nan, 0.0])
    assert shaft_slips(load, joint, np.full(5, 8.0)).tolist() == [False, True, True, False, True]


@pytest.mark.parametrize("outlasts", [False, True])
def test_a_run_that_a_fault_of_a_drive_ends_states_what_clears_it(bench, outlasts, said):
    bench[2].fault, bench[2].faults_outlast_stop = 7, outlasts
    said(stopped(bench, (1000, 0.0)))


@pytest.mark.parametrize(("reads", "reports"), [(10, True), (FIRST_READS - 1, True), (FIRST_READS, False)])
def test_a_real_drive_beside_simulated_ones_may_answer_late_before_the_first_command(dynamometer, reads, reports):
    """Each read waits 5 ms."""
    shoulder, elbow = Reporting(), Reporting(silent=reads)
    shoulder.sample = (1, 0.3, 0.0)
    elbow.sample = (1050 * MS, 0.1, 0.0)
    groups = [DriverGroup(shoulder, np.array([0])), DriverGroup(elbow, np.array([1]), real=True)]
    plant = VirtualPlant(dynamometer.tick_model)
    manager = HardwareManager(groups, plant)
    if not reports:
        with pytest.raises(RunError, match=r"^the drives of elbow report no position; check their power"):
            manager.measure_once(1000 * MS)
        return
    manager.measure_once(1000 * MS)
    assert plant.view("measured", "position").tolist() == [0.3, 0.1]


def test_a_step_of_exactly_the_limit_is_no_jump_and_feedback_of_exactly_the_limit_is_not_stale():
    allowed = 8.0 * (0.001 + JUMP_TIME)
    assert jumped(0.0, np.array([allowed, np.nextafter(allowed, 1.0)]), 0.001, 8.0).tolist() == [False, True]
    assert is_stale(np.array([0.02, np.nextafter(0.02, 1.0)]), 0.02).tolist() == [False, True]
    spans = [longest_span(0.001, before, 0.001) for before in (0.0, 0.001, 0.031)]
    assert spans == pytest.approx([0.001, 0.001, 0.031])
