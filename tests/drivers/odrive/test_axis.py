"""The emulated axis of an ODrive: states, controller, limits, watchdog and errors."""

import math

import pytest

from cosim.core.units import TURN
from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.odrive import codes
from cosim.plugins.drivers.odrive.axis import Axis
from tests.kit.clock import MS


class Bench:
    """A motor behind an axis, and time."""

    def __init__(self, endstop=False):
        self.rotor = Rotor()
        self.axis = Axis(self.rotor, 0, endstop)
        self.t_ns = 0

    def run(self, seconds, feed=True):
        for _ in range(round(seconds * 1000)):
            self.rotor.advance(1e-3)
            self.t_ns += MS
            if feed:
                self.axis.feed(self.t_ns)
            self.axis.process(self.t_ns)

    def on(self, mode):
        self.axis.control_mode = mode
        self.axis.request(codes.CLOSED_LOOP, self.t_ns)
        return self.axis


@pytest.fixture
def bench():
    return Bench()


def test_power_on(bench):
    assert bench.axis.state == codes.IDLE
    bench.axis.input_torque, bench.axis.control_mode = 1.0, codes.TORQUE_CONTROL
    bench.run(0.01)
    assert bench.rotor.effort == 0.0


def test_torque_and_its_limits(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    # the last limits are nonsense
    for asked, low, high, given in (
        (0.5, -9, 9, 0.5),
        (50.0, -9, 9, 2.0),
        (50.0, -9, 0.3, 0.3),
        (50.0, 1.0, -1.0, 0.0),
    ):
        axis.input_torque, axis.torque_soft_min, axis.torque_soft_max = asked, low, high
        bench.run(0.01)
        assert axis.torque == bench.rotor.effort == given


def test_torque_decreases_with_velocity_if_configured(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.enable_torque_mode_vel_limit, axis.vel_limit, axis.input_torque = True, 2.0, 1.0
    bench.run(3.0)
    assert 1.5 < axis.vel_estimate < 2.0 and axis.armed


def test_velocity_and_its_limit(bench):
    axis = bench.on(codes.VELOCITY_CONTROL)
    for goal, reached, within in ((3.0, 3.0, 0.01), (1000.0, axis.vel_limit, 0.02)):
        axis.input_vel = goal
        bench.run(2.0)
        assert bench.rotor.velocity == pytest.approx(reached * TURN, rel=within)


def test_position(bench):
    bench.on(codes.POSITION_CONTROL).move(1.5)
    bench.run(2.0)
    assert bench.rotor.position == pytest.approx(1.5 * TURN, abs=5e-3)


def test_closing_the_loop_does_not_jump(bench):
    bench.rotor.position, bench.axis.input_pos = 10.0, -5.0
    bench.on(codes.POSITION_CONTROL)
    bench.run(0.1)
    assert bench.rotor.position == pytest.approx(10.0, abs=1e-9)


def test_ramps(bench):
    axis = bench.on(codes.VELOCITY_CONTROL)
    axis.input_mode, axis.vel_ramp_rate, axis.input_vel = codes.VEL_RAMP, 2.0, 3.0
    for seconds, reached in ((0.5, 1.0), (1.5, 3.0)):
        bench.run(seconds)
        assert axis.vel_setpoint == pytest.approx(reached)
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.input_mode, axis.torque_ramp_rate, axis.input_torque = codes.TORQUE_RAMP, 1.0, 0.25
    for seconds, reached in ((0.1, 0.1), (0.3, 0.25)):
        bench.run(seconds)
        assert axis.torque == pytest.approx(reached)


def test_position_filter(bench):
    axis = bench.on(codes.POSITION_CONTROL)
    axis.input_mode, axis.input_filter_bandwidth = codes.POS_FILTER, 10.0
    axis.move(1.0)
    bench.run(0.1)
    assert 0.2 < axis.pos_setpoint < 0.8
    bench.run(2.0)
    assert axis.pos_setpoint == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("goal", [2.0, -2.0, 0.001])
def test_trapezoidal_trajectory(bench, goal):
    axis = bench.on(codes.POSITION_CONTROL)
    axis.input_mode = codes.TRAP_TRAJ
    axis.traj_vel_limit, axis.traj_accel_limit, axis.traj_decel_limit = 1.0, 4.0, 2.0
    axis.move(goal)
    fastest = 0.0
    for _ in range(3500):
        bench.run(0.001)
        fastest = max(fastest, abs(axis.vel_setpoint))
    assert axis.trajectory_done and (axis.pos_setpoint, axis.vel_setpoint) == (goal, 0.0)
    assert fastest == pytest.approx(1.0) if abs(goal) > 1 else fastest <= 1.0


def test_inputs_are_ignored_when_inactive(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.input_mode, axis.input_torque = codes.INACTIVE, 1.0
    bench.run(0.01)
    assert bench.rotor.effort == 0.0


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"input_mode": 77}, codes.BAD_CONFIG),
        ({"input_torque": math.nan}, codes.MISSING_INPUT),
        ({"input_torque": math.inf}, codes.MISSING_INPUT),
        ({"watchdog_timeout": math.nan, "enable_watchdog": True}, codes.WATCHDOG_EXPIRED),
    ],
    ids=str,
)
def test_what_makes_no_sense_switches_off(bench, settings, reason):
    axis = bench.on(codes.TORQUE_CONTROL)
    vars(axis).update(settings)
    bench.run(0.001)
    assert axis.disarm_reason == reason and bench.rotor.effort == 0.0


def test_watchdog(bench):
    bench.axis.watchdog_timeout, bench.axis.enable_watchdog = 0.05, True
    axis = bench.on(codes.TORQUE_CONTROL)
    axis.input_torque = 0.1
    bench.run(0.1)
    assert axis.armed
    bench.run(0.05, feed=False)
    assert axis.armed
    bench.run(0.001, feed=False)
    assert (axis.armed, axis.disarm_reason, axis.procedure_result) == (False, codes.WATCHDOG_EXPIRED, codes.DISARMED)
    assert bench.rotor.effort == 0.0


def test_faults_are_cleared_by_clearing_only(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    for temperature, active in ((90.0, codes.MOTOR_OVER_TEMP), (30.0, 0)):
        bench.rotor.temperature = temperature
        bench.run(0.001)
        assert (axis.active_errors, axis.disarm_reason) == (active, codes.MOTOR_OVER_TEMP)
    axis.request(codes.CLOSED_LOOP, bench.t_ns)
    assert not axis.armed
    axis.clear_errors()
    axis.request(codes.CLOSED_LOOP, bench.t_ns)
    assert axis.armed


def test_clearing_does_not_help_while_the_cause_lasts(bench):
    bench.rotor.fault_cause = "undervoltage"
    bench.axis.clear_errors()
    bench.axis.request(codes.CLOSED_LOOP, 0)
    assert not bench.axis.armed


def test_overspeed_and_emergency_stop(bench):
    axis = bench.on(codes.TORQUE_CONTROL)
    bench.rotor.velocity = 1.3 * bench.rotor.max_velocity
    bench.run(0.001)
    assert axis.disarm_reason == codes.VELOCITY_VIOLATION
    axis.estop()
    assert axis.disarm_reason & codes.ESTOP_REQUESTED and not axis.armed


def test_states_that_are_not_emulated(bench):
    bench.axis.request(3, 0)
    assert (bench.axis.state, bench.axis.procedure_result) == (codes.IDLE, codes.INVALID_STATE)


def test_homing():
    bench = Bench(endstop=True)
    bench.rotor.position = 1.0
    bench.axis.reset(0)
    assert bench.axis.pos_estimate == 0.0  # an encoder that counts from where it is
    bench.axis.request(codes.HOMING, 0)
    assert bench.axis.procedure_result == codes.BUSY
    bench.run(2.0)
    assert (bench.axis.is_homed, bench.axis.state, bench.axis.procedure_result) == (True, codes.IDLE, codes.SUCCESS)
    assert bench.axis.pos_estimate == pytest.approx(bench.rotor.position / TURN)


def test_setting_the_position_moves_nothing(bench):
    axis = bench.on(codes.POSITION_CONTROL)
    axis.set_position(3.0)
    bench.run(0.1)
    assert axis.pos_estimate == pytest.approx(3.0) and bench.rotor.position == 0.0
    axis.set_position(math.nan)
    assert axis.pos_estimate == pytest.approx(3.0)


def test_power_cycle_keeps_what_was_saved(bench):
    axis = bench.axis
    axis.pos_gain = 5.0
    axis.reset(0)
    assert axis.pos_gain == 20.0
    axis.pos_gain = 5.0
    axis.save()
    bench.on(codes.TORQUE_CONTROL)
    axis.reset(0)
    assert (axis.pos_gain, axis.state) == (5.0, codes.IDLE)
