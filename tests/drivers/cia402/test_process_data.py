"""Drives that do not let their process data be mapped: used with their own, if these have what the mode needs."""

import struct

import pytest

from cosim.drivers.cia402 import codec, faults, process_data, profile
from cosim.drivers.cia402.device import objects
from cosim.drivers.cia402.process_data import CommandCoder, ProcessMap, chosen
from tests.drivers.bench import refused
from tests.drivers.cia402.conftest import JOINT
from tests.kit.clock import MS

FIXED = {"fixed_maps": True}


@pytest.fixture
def remapped(monkeypatch):
    """Change the fixed maps of emulated drives: index -> mapped objects."""

    def change(**maps):
        table = dict(objects._FIXED) | {int(name, 16): mapped for name, mapped in maps.items()}
        flat = {index << 8: len(mapped) for index, mapped in table.items()}
        flat |= {index << 8 | k: each for index, mapped in table.items() for k, each in enumerate(mapped, 1)}
        monkeypatch.setattr(objects, "FIXED_MAPS", flat)

    return change


def frames(b, cob_id):
    return [frame.data for frame in b.sent if frame.id == cob_id]


def test_only_the_pdos_that_the_mode_needs_are_exchanged(running):
    b = running(JOINT(id=3), mode="effort", drive=FIXED)
    b.cycle(3)
    node = b.node()
    valid = {
        key for key in (*range(0x140001, 0x140401, 256), *range(0x180001, 0x180401, 256)) if node.value(key) < 2**31
    }
    assert valid == {0x140001, 0x180001, 0x180101}
    b.sent.clear()
    b.write(effort=0.1)
    assert frames(b, 0x203) == [struct.pack("<Hbh", 0x0F, 10, round(0.1e6 / node.rated))]
    assert not frames(b, 0x303) and not frames(b, 0x403)


def test_what_is_not_commanded_keeps_its_value(running):
    b = running(JOINT(id=3), mode="velocity", drive=FIXED, effort=1.0)
    b.cycle(2, velocity=1.0, effort=0.1)
    control, target = frames(b, 0x203)[-1], frames(b, 0x403)[-1]
    assert control == struct.pack("<Hbh", 0x0F, 9, 0)
    assert target == struct.pack("<ihH", round(65536 / 6.283185307), round(0.1e6 / b.node().rated), 1500)
    assert b.node().value(0x607200) == 1500  # the limit of the guard, and not 0


def test_the_temperature_is_read_where_the_own_map_has_it(running):
    b = running(JOINT(id=3, temperature=0x320101), drive=FIXED)
    b.motors[0].temperature = 45.0
    assert b.cycle(3).temperature.tolist() == [45.0]


LACKING = {
    "temperature": {"1A02": ()},
    "target torque": {"1600": (0x60400010, 0x60600008)},
    "whole bytes": {"1A00": (0x60410010, 0x60640020, 0x22000001)},
}


@pytest.mark.parametrize("maps", LACKING.values(), ids=LACKING)
def test_process_data_without_what_the_mode_needs_are_refused(bench, remapped, maps, said):
    remapped(**maps)
    b = bench(JOINT(id=3, temperature=0x320101), drive=FIXED)
    said(refused(b.driver.open))
    assert b.node().state == profile.DISABLED


def test_without_a_torque_offset_efforts_beside_a_position_are_counted_as_clipped(running, remapped):
    remapped(**{"1602": (0x60FF0020,)})
    b = running(JOINT(id=3), mode="position", drive=FIXED)
    b.cycle(3, effort=0.1)
    (report,) = b.driver.report()
    assert report["limit"] == 0.0 and report["saturated"] == 3
    assert b.node().value(0x60B200) == 0


def test_without_velocities_the_positions_give_them(running, remapped):
    remapped(**{"1A01": (0x60610008, 0x60770010)})
    b = running(JOINT(id=3), drive=FIXED)
    b.cycle(200, effort=0.02)
    assert b.out.velocity == pytest.approx([b.motors[0].velocity], rel=0.06) and b.motors[0].velocity > 2.0


def test_a_drive_that_does_not_send_its_mode_is_asked_when_it_is_switched_on(running, remapped):
    remapped(**{"1A01": (0x606C0020, 0x60770010)})
    b = running(JOINT(id=3), mode="position", drive=FIXED)
    assert b.cycle(5).fault.tolist() == [0]
    assert b.driver._store.display == [profile.CSP]


def test_another_mode_and_a_silent_pdo_are_noticed(running, remapped):
    remapped(**{"1600": (0x60400010, 0x60710010)})
    b = running(JOINT(id=3), drive=FIXED)
    b.cycle(3)
    b.node().mode = profile.CSP
    assert b.cycle(3).fault.tolist() == [faults.OTHER_MODE]
    b.node().mode = profile.CST
    b.cycle(3)
    heard, lost = b.out.t_ns, b.driver.lost
    b.spoil = lambda frame: (frame,) if frame.id != codec.TPDO + codec.PDO_STRIDE + 3 else ()
    b.cycle(20)
    assert b.out.t_ns <= heard + MS and b.driver.lost == lost
    b.driver._store.take(codec.CanFrame(codec.TPDO + 3, b"12345"))
    assert b.driver.lost == lost + 1


def test_after_a_loss_of_power_the_own_map_is_used_again(running):
    b = running(JOINT(id=3), drive=FIXED)
    b.cycle(3)
    b.emulator.reset(b.t_ns)
    assert b.cycle(3).fault.tolist() == [faults.RESTARTED]
    b.driver.enable("effort")
    assert b.cycle(3).fault.tolist() == [0]


def test_the_first_pdo_with_each_object_is_chosen():
    word, target, mode = 0x60400010, 0x607A0020, 0x60600008
    own = ProcessMap(
        ((0, (word,)), (1, (word, mode)), (2, (word, target)), (3, (word, 0x60FF0020))),
        ((0, (0x60410010,)), (1, (0x60410010, 0x60610008)), (2, (0x60410010, 0x60640020)), (3, (0x60770010,))),
        {},
    )
    found = chosen(own, "position", None)
    assert [number for number, _ in found.receive] == [2]
    assert [number for number, _ in found.transmit] == [1, 2, 3]
    assert own.lacks("position") == () and own.lacks("effort") == (process_data.TORQUE,)
    coder = CommandCoder(ProcessMap(((0, (0x22000018, word)),), (), {0x22000018: 0x030201}), "effort", 10)
    assert coder.data(15, (0,)) == [(0, b"\x01\x02\x03\x0f\x00")]
