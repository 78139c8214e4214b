"""Engines: ticks in blocks, the order of tasks in a tick, commands and stops of drivers."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.linalg import expm

from cosim.core.errors import RunError
from cosim.execution.drive_loops import exponential
from cosim.execution.gradients import segment_length
from cosim.execution.native_engine import NativeEngine
from cosim.execution.python_engine import PythonEngine
from cosim.plugins.drivers import sim
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.execution.scheduler_helpers import failing
from tests.kit.drivers import LoggedDriver
from tests.kit.engines import armed, python_engine

RIG = """
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: b, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints:
  b: {limits: {upper: 0.5, effort: 4}, encoder: {cpr: 1000}}
controllers:
  - {type: pid, kp: 40, ki: 20, kd: 4, period: 3 ms, trajectory: {type: quintic, goal: [0.3, 0.2], duration: 0.2}}
"""
LEAVING = "controllers.pid.trajectory.goal=[0.0, 2.0]"  # joint b, soon beyond its limit


@pytest.fixture
def rig_of(shared_rig):
    return partial(shared_rig, RIG)


def engine_of(rig, *groups, log=None):
    """(Python engine, armed, its drivers): one driver for each group of joint numbers."""
    drivers = []

    def logged(driver):
        drivers.append(LoggedDriver(driver, log, arguments=True))
        return drivers[-1]

    return armed(python_engine(rig, *groups, wrap=logged)), drivers


def engines(rig):
    return NativeEngine(rig.tick_model), engine_of(rig)[0]


def test_ticks_in_blocks_are_the_ticks_at_once(rig_of):
    rig = rig_of()
    for whole, parts in zip(engines(rig), engines(rig), strict=True):
        rows, stopped = whole.run(60)
        assert rows.shape == (60, rig.tick_model.row.size) and stopped == ""
        blocks = [parts.run(count)[0] for count in (1, 0, 2, 7, 50)]
        np.testing.assert_array_equal(np.concatenate(blocks), rows)


def test_both_engines_leave_the_same_rows(rig_of):
    native, python = (engine.run(200)[0] for engine in engines(rig_of()))
    np.testing.assert_allclose(python, native, atol=1e-12)


def test_both_engines_stop_at_the_same_tick_with_the_same_words(rig_of, said):
    (rows, words), (other, same_words) = (engine.run(1000) for engine in engines(rig_of(LEAVING)))
    assert len(rows) == len(other) < 500 and words == same_words
    assert words.startswith(f"stopped at tick {len(rows) - 1} (t = {(len(rows) - 1) / 1000:g} s): joint 'b' is at 0.5")
    np.testing.assert_allclose(other, rows, atol=1e-12)
    said(words)


def test_drivers_are_opened_read_and_written_in_order(rig_of):
    log: list[str] = []
    engine, _ = engine_of(rig_of(), (0,), (1,), log=log)
    assert log == ["open a", "open b", "enable a effort", "enable b effort"]
    log.clear()
    engine.run(2)
    assert log == [
        "read a 0", "read b 0", "write a 0", "write b 0",
        "read a 1000000", "read b 1000000", "write a 1000000", "write b 1000000",
    ]  # fmt: skip


def test_the_assignment_of_joints_to_drivers_makes_no_difference(rig_of):
    rig = rig_of()
    one, two, turned = (engine_of(rig, *groups)[0].run(100)[0] for groups in ([(0, 1)], [(0,), (1,)], [(1, 0)]))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, turned)


def test_every_close_stops_every_driver(rig_of):
    log: list[str] = []
    engine, _ = engine_of(rig_of(), (0,), (1,), log=log)
    engine.run(5)
    log.clear()
    engine.close()
    engine.close()
    assert log == ["stop a", "stop b", "close a", "close b"] * 2


def test_commands_are_held_between_periods_cut_by_the_guard_and_good_for_a_while(rig_of):
    engine, (driver,) = engine_of(rig_of("controllers.pid.kp=1e5"))
    engine.run(9)
    commands = driver.commands
    assert [command.valid_until_ns for command in commands] == [(k + 20) * 1_000_000 for k in range(9)]
    for k, command in enumerate(commands):
        np.testing.assert_array_equal(command.position, commands[k // 3 * 3].position)
        np.testing.assert_array_equal(command.kp, [1e5, 1e5])
    assert commands[3].position[0] != commands[0].position[0]
    requests = [engine.tick_model.row.unpack(row)["request"] for row in engine.run(60)[0]]
    assert np.abs(requests)[:, 1].max() == pytest.approx(4.0, rel=1e-12)
    assert np.abs(requests)[:, 0].max() > 4.0


@pytest.mark.parametrize("what", ["read", "write"])
def test_a_driver_that_fails_stops_the_run_and_its_fellows(rig_of, what):
    log: list[str] = []
    engine, (first, _) = engine_of(rig_of(), (0,), (1,), log=log)
    engine.run(3)
    setattr(first, what, failing(RunError("the cable is out")))
    rows, stopped = engine.run(10)
    assert (len(rows), stopped) == (0, "stopped at tick 3 (t = 0.003 s): the cable is out")
    assert log[-2:] == ["stop a", "stop b"]


def test_a_late_driver_keeps_what_was_measured_before(rig_of):
    engine, (driver,) = engine_of(rig_of("joints.a.initial.position=0.3"))
    engine.run(1)
    held = engine.view("measured", "position").copy()
    driver.read = lambda out, deadline_ns: None
    engine.run(1)
    np.testing.assert_array_equal(engine.view("measured", "position"), held)
    assert held[0] == pytest.approx(0.3, abs=1e-3)


@pytest.mark.parametrize(("what", "closed"), [("open", ["closed"]), ("enable", [])])
def test_drivers_are_closed_if_another_fails_to_open_and_stopped_if_it_fails_to_enable(rig_of, what, closed):
    rig, done = rig_of(), []
    world = VirtualPlant(rig.tick_model)
    good = LoggedDriver(sim.load(("a",), np.array([0]), rig.limits, world), [])
    good.close = lambda: done.append("closed")
    broken = LoggedDriver(sim.load(("b",), np.array([1]), rig.limits, world), [])
    setattr(broken, what, failing(OSError("no such device")))
    engine = PythonEngine(rig.tick_model, world, [(good, np.array([0])), (broken, np.array([1]))])
    with pytest.raises(RunError, match=r"^the driver of b failed: OSError: no such device \("):
        engine.open()
        engine.arm()
    assert done == closed and good.log[-1] == "stop a"


# --- gradients ---


@pytest.mark.parametrize(
    ("count", "tape", "memory", "room", "length"),
    [
        (5001, 266, 318, 1e9, 5001),  # everything fits
        (5001, 266, 318, 266 * 1000, 1000),  # as many as fit
        (5001, 266, 318, 266 * 10, math.isqrt(5001 * 318 // 266) + 1),  # not fewer than √count suggests
        (3, 266, 318, 1.0, 2),
        (1, 266, 318, 1.0, 1),
    ],
)
def test_segments(count, tape, memory, room, length):
    assert segment_length(count, tape, memory, room) == length


# --- the matrix exponential ---


@pytest.mark.parametrize("size", [0.0, 1e-9, 0.3, 1.0, 20.0, 400.0])
def test_it_is_that_of_scipy(size):
    rng = np.random.default_rng(1)
    for n in (1, 4, 19):
        matrix = size * rng.normal(size=(n, n)) / n
        matrix -= size * np.eye(n)  # stable, as drives and their current loops are
        expected = expm(matrix)
        np.testing.assert_allclose(exponential(matrix), expected, rtol=0, atol=1e-11 * max(np.abs(expected).max(), 1.0))


def test_a_double_integrator_is_exact():
    np.testing.assert_array_equal(exponential(np.array([[0.0, 0.25], [0.0, 0.0]])), [[1.0, 0.25], [0.0, 1.0]])


def test_a_stiff_current_loop_decays():
    np.testing.assert_allclose(exponential(np.diag([-1e4, -1.0])), np.diag([0.0, np.exp(-1.0)]), atol=1e-14)
