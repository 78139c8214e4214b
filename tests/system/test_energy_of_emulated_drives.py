"""The energy account of emulated drives on a CAN bus and on a serial port."""

import math

import numpy as np
import pytest

from cosim import load_run
from cosim.rig.rig import load_rig
from tests.kit.emulated import emulated

RIG = """
drivers: [{DRIVER, observer: 5 Hz, watchdog: 2 s, joints: {hinge: {id: 1}}}]
mechanism:
  gravity: [0, 0, 0]
  bodies: [{name: disc, joint: hinge, axis: [0, 0, 1], mass: 1, inertia: [0.002, 0.002, 0.002], damping: 0.6}]
joints:
  hinge: {limits: {lower: -3, upper: 3, velocity: VELOCITY, effort: 2}}
controllers: [{type: pid, kp: 2, ki: 0, kd: 0.1, trajectory: {type: sine, amplitude: 0.4, frequency: 0.25, ramp: 0.5}}]
emulator: {voltage: 12 V}
guard: {stale: 1 s, watchdog: 10 s}
schedule: {step: 10 ms, duration: 2.5 s, realtime: {overrun: skip, warm_up: 60}}
"""
# a driver and the velocity limit, far above the motion: a busy machine delays samples, which looks like a jump
DRIVES = {
    "serial": ("type: dynamixel, port: {port: PORT, baudrate: 1e6}", 4.5),
    "CAN": ("type: moteus, bus: {interface: virtual, channel: energy, fd: true}", 30),
}


@pytest.mark.parametrize("line", DRIVES)
def test_the_account_of_an_emulated_drive_is_finite_and_small(tmp_path, line):
    path, recording = tmp_path / "rig.yaml", tmp_path / "run.mcap"
    driver, velocity = DRIVES[line]
    text = RIG.replace("DRIVER", driver).replace("VELOCITY", str(velocity))
    path.write_text(text.replace("PORT", str(tmp_path / "port")))
    with emulated(path, "schedule.step=0.001"):
        run = load_rig(path).run(record=recording)
    account = run.summary["real_joints"]["hinge"]
    assert account["effort"] == "reported" and run.summary["load_motors"] == {}
    assert all(math.isfinite(account[key]) for key in ("residual", "residual_max", "power_max"))
    read = load_run(recording)
    assert read.summary["real_joints"]["hinge"] == pytest.approx(account)
    power, model_power = read["hinge/power"], read["hinge/model_power"]
    np.testing.assert_allclose(power, read["hinge/effort"] * read["hinge/measured_velocity"], rtol=0, atol=1e-12)
    # friction takes 0.6 · v² on average; the emulator moves the same arm, up to delays and the filter
    taken = float(np.sum(model_power)) * 10e-3
    assert taken > 0.1
    assert account["residual_max"] < 0.5 * taken
    assert np.isclose(account["residual"], read["hinge/residual_energy"][-1])
