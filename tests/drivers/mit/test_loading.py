"""Mistakes in a rig with drives of the Mini Cheetah protocol, and what the drives themselves refuse."""

import numpy as np
import pytest

from cosim.core.errors import InputErrors
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.families import Bench, Case, rig, section, write_rig
from tests.conformance.wires import Desk
from tests.drivers.bench import refused
from tests.drivers.loading import mistakes_of

CASE = Case("mit", "virtual", stepped=True)
DAMIAO = {"id": 1, "master": 17, "model": "DM4310"}
AK = {"id": 2, "master": 18, "model": "AK80-9@v2"}


def test_answers_that_are_taken_for_those_of_another_drive_are_refused(tmp_path, said):
    for b in ({**DAMIAO, "id": 33}, {**AK, "master": 1}):
        said(mistakes_of(tmp_path, CASE, DAMIAO, b))


@pytest.mark.parametrize("mode", ["position", "velocity"])
def test_the_loops_of_the_drive_need_their_gain(tmp_path, mode, said):
    said(mistakes_of(tmp_path, CASE, DAMIAO, AK, mode=mode))


def test_limits_beyond_the_ranges_are_refused_when_the_rig_is_loaded(tmp_path, said):
    data = rig(section(CASE, tmp_path), (DAMIAO, AK))
    data["joints"]["b"]["limits"] |= {"lower": -20, "upper": 20}
    with pytest.raises(InputErrors) as caught:
        Rig(read_rig(write_rig(tmp_path / "rig.yaml", data)), interpret=True)
    said(caught.value)


def model(name: str):
    """Joint b with a known model instead of the custom one."""

    def changed(rig):
        joint = rig["drivers"][0]["joints"]["b"]
        ungiven = ("protocol", "max_position", "max_velocity", "max_effort")
        rig["drivers"][0]["joints"]["b"] = {k: v for k, v in joint.items() if k not in ungiven} | {"model": name}

    return changed


STRANGERS = {
    "another Damiao": {"host": model("DM4310"), "device": model("DM4340")},
    "a Damiao for an AK": {"host": model("AK80-9@v2"), "device": model("DM4310")},
    "another master id": {"host": lambda rig: rig["drivers"][0]["joints"]["b"].update(master=77)},
}


@pytest.mark.parametrize("changes", STRANGERS.values(), ids=STRANGERS)
def test_another_drive_is_refused(tmp_path, changes, said):
    with Bench(CASE, tmp_path, **changes) as bench:
        what = refused(bench.driver.open).partition("rig.yaml:1 ")[2]
        assert what.startswith("drivers[0].joints.b.id: ")
        said(what, r"(?<=conformance )\d+")


def test_the_watchdog_and_the_control_mode_of_a_damiao_are_written(tmp_path, said):
    class Kept(dict):
        def __setitem__(self, number, value):
            """As a drive that does not take the value."""

    with Bench(CASE, tmp_path, watchdog=0.25) as bench:
        drive = bench.line.drives.drives[2]
        own = drive.registers
        drive.registers = Kept(own)
        said(refused(bench.driver.open).partition("rig.yaml:1 ")[2])
        drive.registers = own
        bench.open()
        assert (own[9], own[10]) == (5000, 1)


def test_a_mini_cheetah_gets_no_command_after_a_pause_longer_than_its_watchdog(tmp_path):
    with Bench(CASE, tmp_path, watchdog=0.3) as bench:
        bench.open("effort")
        bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=0.02)
        bench.wait(0.4)
        bench.write(effort=0.02)
        bench.read()
        assert bench.out.fault[0] < 0 and bench.out.fault[1] == 13
        bench.off()
        lost = "joint 'b': fault: communication lost, the watchdog tripped"
        assert refused(bench.driver.enable, "effort").startswith(lost)


def test_gains_go_to_the_drive_and_their_rounding_is_closed_here(tmp_path, monkeypatch):
    """The drive computes the effort of the command; its motor stands still."""
    desk = Desk(CASE, tmp_path, monkeypatch)
    desk.driver.open()
    desk.cycle(3)
    desk.driver.enable("effort")
    error, kp, kd, velocity = np.array([0.02, -0.04]), np.array([0.5, 0.31]), np.array([0.1, 0.005]), 0.3
    desk.cycle(3, position=desk.out.position + error, velocity=velocity, kp=kp, kd=kd)
    sent = desk.emulator.drives[2].targets
    assert sent[2:4] == pytest.approx((0.31, 0.005), abs=0.5 * 500 / 4095) and sent[2] > 0.0 and sent[3] > 0.0
    expected = (kp * error + kd * velocity) / [-2.0, 1.0]
    np.testing.assert_allclose([motor.requested for motor in desk.motors], expected, atol=4e-4)
