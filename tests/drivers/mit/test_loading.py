"""Mistakes in a rig with drives of the Mini Cheetah protocol, and what the drives themselves refuse; exact messages."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.errors import InputError, InputErrors, RunError
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.families import Bench, Case, section, write_rig
from tests.conformance.families import rig as rig_of
from tests.conformance.wires import Desk

CASE = Case("mit", "virtual")
DAMIAO = {"id": 1, "master": 17, "model": "DM4310"}
AK = {"id": 2, "master": 18, "model": "AK80-9@v2"}
PLACE = "rig.yaml drivers[0].joints"


def loaded(folder, a: dict, b: dict, **keys):
    """The driver of a rig with these joints."""
    spec = read_rig(write_rig(folder / "rig.yaml", rig_of(section(CASE, folder, **keys), (a, b))))
    context = Rig(spec, interpret=True).contexts["mit"]
    return spec.drivers[0].plugin.module.load(spec.drivers[0].plugin.params, context)


def said(error: InputError) -> str:
    return str(error).partition("rig.yaml:1 ")[2]


WRONG = {
    "drivers[0].joints.a: unknown model 'DM6066'; did you mean 'DM6006'?": {"model": "DM6066"},
    "drivers[0].joints.a: unknown model 'ak80-8'; did you mean 'AK80-8'?": {"model": "ak80-8"},
    "drivers[0].joints.a: drives named 'AK80-9' have several ranges; by the manual of yours set AK80-9@v1 (95.5 rad,"
    " 30 rad/s, 18 N*m) or AK80-9@v2 (12.5 rad, 50 rad/s, 18 N*m)": {"model": "AK80-9"},
    **{
        f"drivers[0].joints.a: '{name}': AK drives of V3 have other frames than those of V1 and V2, which this driver"
        " does not know; use a drive of V1 or V2": {"model": name}
        for name in ("AK80-9@v3", "AK10-9 V3.0", "AKE80-8-V3")
    },
    "drivers[0].joints.a: 'max_effort' is for 'model: custom'; leave it out, DM4310 has its own": {"max_effort": 7},
    "drivers[0].joints.a: a custom model needs 'max_velocity', as its manual has it; give it": {
        "model": "custom",
        "protocol": "damiao",
        "max_position": 12.5,
        "max_effort": 7,
    },
    "drivers[0].joints.a: give 'protocol' for 'model: custom', and for no other model": {"protocol": "damiao"},
    "drivers[0].joints.a.max_effort: must be above 0 N*m, is -7 N*m": {"max_effort": -7},
    "drivers[0].joints.a.id: must be at most 255, is 256": {"id": 256},
    "drivers[0].joints.a.protocol: expected one of damiao, mini_cheetah; got 'mit'": {"protocol": "mit"},
    "drivers[0].joints.a.kp: must be at most 500 N*m/rad, is 501 N*m/rad": {"kp": 501},
}


@pytest.mark.parametrize(("message", "keys"), WRONG.items(), ids=range(len(WRONG)))
def test_a_mistake_of_a_joint_is_one_line_at_its_place(tmp_path, message, keys):
    with pytest.raises((InputError, InputErrors)) as caught:
        loaded(tmp_path, {**DAMIAO, **keys}, AK)
    error = caught.value
    assert [said(each) for each in getattr(error, "errors", [error])] == [message]


def test_a_model_must_be_given(tmp_path):
    with pytest.raises((InputError, InputErrors), match=r"drivers\[0\].joints.a: missing key 'model'"):
        loaded(tmp_path, {"id": 1, "master": 17}, AK)


def test_answers_that_are_taken_for_those_of_another_drive_are_refused(tmp_path):
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, DAMIAO, {**DAMIAO, "id": 33})
    what = "answers with 17 are taken for those of joint 'a'; give the drive a master id of its own"
    assert said(caught.value) == f"drivers[0].joints.b.master: {what}"
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, DAMIAO, {**AK, "master": 1})
    what = "1 is the id of the drive of joint 'a'; give the drive a master id of its own"
    assert said(caught.value) == f"drivers[0].joints.b.master: {what}"


@pytest.mark.parametrize(("mode", "key"), [("position", "kp"), ("velocity", "kd")])
def test_the_loops_of_the_drive_need_their_gain(tmp_path, mode, key):
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, DAMIAO, AK, mode=mode)
    what = f"in the mode '{mode}' the drive needs its gain '{key}', above 0; give it"
    assert said(caught.value) == f"drivers[0].joints.a: {what}"


def test_a_watchdog_shorter_than_the_step_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"watchdog: must be longer than the period of 0.02 s, is 0.015 s"):
        loaded(tmp_path, DAMIAO, AK, watchdog=0.015)


def refused(bench: Bench) -> str:
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    return said(caught.value)


def with_joints(**joints: dict):
    return lambda rig: [rig["drivers"][0]["joints"][name].update(keys) for name, keys in joints.items()]


CUSTOM = {"model": "custom", "protocol": "damiao", "max_position": 12.5, "max_velocity": 30, "max_effort": 10}
UNGIVEN = ("protocol", "max_position", "max_velocity", "max_effort")


def model(name: str):
    """Joint b with a known model instead of the custom one."""

    def changed(rig):
        joint = rig["drivers"][0]["joints"]["b"]
        rig["drivers"][0]["joints"]["b"] = {key: value for key, value in joint.items() if key not in UNGIVEN}
        rig["drivers"][0]["joints"]["b"]["model"] = name

    return changed


def test_a_damiao_of_another_model_is_refused_with_its_ranges(tmp_path):
    with Bench(CASE, tmp_path, host=model("DM4310"), device=model("DM4340")) as bench:
        assert refused(bench) == (
            "drivers[0].joints.b.id: node 2 has the ranges 12.5 rad, 10 rad/s, 28 N*m (DM4340), not 12.5 rad, 30 rad/s,"
            " 10 N*m (DM4310); correct its 'model', or PMAX, VMAX and TMAX of the drive"
        )


def test_a_damiao_for_an_ak_drive_is_refused(tmp_path):
    with Bench(CASE, tmp_path, host=model("AK80-9@v2"), device=model("DM4310")) as bench:
        assert refused(bench) == ("drivers[0].joints.b.id: node 2 answers as a Damiao drive; correct its 'model'")


def test_silence_names_both_ids(tmp_path):
    with Bench(CASE, tmp_path, host=with_joints(b={"master": 77})) as bench:
        name = bench.driver.link.name
        assert refused(bench) == (
            f"drivers[0].joints.b.id: no answer from node 2 with the master id 77 on {name}; check its power, both ids,"
            " its model and the bit rate"
        )


def test_limits_beyond_the_ranges_are_refused_when_the_rig_is_loaded(tmp_path):
    data = rig_of(section(CASE, tmp_path), (DAMIAO, AK))
    data["joints"]["b"]["limits"] |= {"lower": -20, "upper": 20}
    with pytest.raises(InputErrors) as caught:
        Rig(read_rig(write_rig(tmp_path / "rig.yaml", data)), interpret=True)
    assert said(caught.value) == (
        "drivers[0].joints.b.id: the upper position limit is 20 rad at node 2, whose own limit is 12.5 rad (range"
        " of the model); lower the joint's limit or raise the drive's"
    )


def test_the_watchdog_and_the_control_mode_of_a_damiao_are_written(tmp_path):
    with Bench(CASE, tmp_path, watchdog=0.25) as bench:
        bench.open()
        registers = bench.line.drives.drives[2].registers
        assert (registers[9], registers[10]) == (5000, 1)


def test_a_damiao_that_keeps_its_watchdog_is_refused(tmp_path):
    class Kept(dict):
        def __setitem__(self, number, value):
            """As a drive that does not take the value."""

    with Bench(CASE, tmp_path) as bench:
        drive = bench.line.drives.drives[2]
        bench.there(lambda: setattr(drive, "registers", Kept(drive.registers)))
        assert refused(bench) == (
            "drivers[0].joints.b.id: node 2 keeps 0 in register 9 instead of 20000; set it with the tool of its"
            " manufacturer"
        )


def test_a_mini_cheetah_gets_no_command_after_a_pause_longer_than_its_watchdog(tmp_path):
    with Bench(CASE, tmp_path, watchdog=0.3) as bench:
        bench.open("effort")
        bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=0.02)
        steps = bench.emulation.steps + 400
        for _ in bench.until(lambda: bench.emulation.steps > steps):
            pass
        bench.write(effort=0.02)
        bench.read()
        assert bench.out.fault[0] < 0 and bench.out.fault[1] == 13
        bench.off()
        with pytest.raises(RunError, match="joint 'b': fault: communication lost, the watchdog tripped"):
            bench.driver.enable("effort")


def test_gains_go_to_the_drive_and_their_rounding_is_closed_here(tmp_path, monkeypatch):
    """The effort that the drive computes is that of the command; its motor stands still."""
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
