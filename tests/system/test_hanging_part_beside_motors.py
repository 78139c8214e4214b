"""A part in Python that hangs beside a real motor: the motor is off long before the part returns, if it ever does."""

import pytest

from cosim.core.errors import RunError
from cosim.execution.scheduler import SchedulerState
from cosim.rig.rig import load_rig
from cosim.simulation.tick.virtual_plant import VirtualPlant
from tests.kit.emulated import emulated
from tests.kit.flywheel import flywheel

RIG = """
drivers:
  - {type: dynamixel, port: {port: PORT, baudrate: 1e6}, watchdog: 5 s, joints: {hinge: {id: 1}}}
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: disc, joint: hinge, axis: [0, 0, 1], mass: 1, inertia: [0.01, 0.01, 0.01]}]
joints:
  hinge: {limits: {lower: -3, upper: 3, velocity: 4, effort: 2}}
parts:
  - {name: wheel, type: wheel.py, params: {inertia: 1e-3, stiffness: 1e-3}}
couplings:
  bonds: [{effort: [wheel.torque, mechanism.hinge/effort], flow: [mechanism.hinge/velocity, wheel.speed]}]
controllers: [{type: pid, kp: 0.5, ki: 0, kd: 0.1, trajectory: {type: sine, amplitude: 0.2, frequency: 0.5}}]
emulator: {voltage: 12 V}
guard: {stale: 4 s}
schedule: {step: 10 ms, duration: 5 s, realtime: {overrun: skip, warm_up: 60}}
"""
HANG = 6.0  # s
AT = 0.3  # s


@pytest.fixture
def folder(tmp_path):
    twist = f'(float(x["twist"]) if float(t) < {AT} else time.sleep({HANG}))'
    (tmp_path / "wheel.py").write_text(flywheel(twist, imports="import time"))
    (tmp_path / "rig.yaml").write_text(RIG.replace("PORT", str(tmp_path / "port")))
    return tmp_path


def longest_silence(log):
    """s, in the time of the emulator, for which the motor was on and nothing was received. log: after each of its
    steps, whether its motor is on, and the number of items received."""
    longest = last = 0
    for k, (enabled, answered) in enumerate(log):
        last = last if k and enabled and answered == log[k - 1][1] else k
        longest = max(longest, k - last)
    return longest * 1e-3


SETTINGS = {"time limit": ["guard.watchdog=1 s"], "watchdog": ["guard.watchdog=1 s", "couplings.time_limit=60 s"]}


@pytest.mark.parametrize("case", SETTINGS)
def test_it_stops_the_motor_within_the_time_limit_or_that_of_the_watchdog(folder, said, case):
    """In the time of the emulator, much less than the part and the watchdog of the drive take."""
    log = []

    def note(emulation):
        (connection,), (motor,) = emulation.connections, emulation.motors.motors
        log.append((motor.enabled, connection.answered))

    alone = ["schedule.step=0.001", "parts=[]", "couplings={}"]
    rig = load_rig(folder / "rig.yaml", SETTINGS[case])
    with emulated(folder / "rig.yaml", *alone, after_step=note), rig.scheduler() as scheduler:
        scheduler.prepare()
        scheduler.arm()
        scheduler.start()
        list(iter(scheduler.read, None))
        assert scheduler.state is SchedulerState.FAULT
        stopped = scheduler.fault
    said(stopped, r"tick \d+ \(t = \S+ s\)", r"(?<=at t = )\S+")
    assert any(enabled for enabled, _ in log) and not log[-1][0]
    assert longest_silence(log) < 2.0  # the limits are 0.5 s and 1 s


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ([], 0.05),
        (["guard.watchdog=0.3 s"], 0.15),
        (["schedule.step=40 ms"], 0.1),
        (["couplings.time_limit=2 s"], 2.0),
        (["drivers=[]"], 10.0),
        (["drivers=[]", "guard.watchdog=0.3 s"], 10.0),
        (["parts.wheel.federate=other"], 10.0),
    ],
)
def test_the_default_of_the_time_limit_is_half_of_the_watchdog_beside_real_motors(folder, settings, seconds):
    coupling = load_rig(folder / "rig.yaml", settings).tick_model.coupling
    assert coupling.time_limit == pytest.approx(seconds)
    assert coupling.start_limit == (2.0 if seconds == 2.0 else 10.0)  # a start may load files


def test_a_start_may_take_longer_than_a_step(folder):
    """It may load files, and no motor is on."""
    text = (folder / "wheel.py").read_text()
    slow = text.replace('return {"twist"', 'time.sleep(0.3)\n        return {"twist"')
    assert slow != text
    (folder / "wheel.py").write_text(slow)
    plant = VirtualPlant(load_rig(folder / "rig.yaml", ["guard.watchdog=0.4 s"]).tick_model)
    assert plant.tick_model.coupling is not None and plant.tick_model.coupling.time_limit == 0.2
    plant.open()
    last, t = round(AT / 10e-3) - 1, plant.view("t")
    for k in range(last):
        t[...] = k * 10e-3
        plant.advance()
    t[...] = last * 10e-3
    with pytest.raises(RunError, match=r"the step of part 'wheel' at t = 0.29 s has not ended after 0.2 s"):
        plant.advance()
