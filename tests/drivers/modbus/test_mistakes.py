"""Mistakes in the map of registers: one line each, at its place."""

from __future__ import annotations

import json

import pytest

from cosim.errors import InputError
from cosim.rig.rig import load_rig
from tests.conformance.families import rig
from tests.conformance.register_maps import FLOATS, WHOLE_NUMBERS

PORT = {"port": "/dev/ttyUSB0", "baudrate": 115200}
AT = "1 drivers[0].joints.b"
MAP = f"{AT}.registers"


def changed(map=WHOLE_NUMBERS, without=(), **keys):
    return {"id": 2, "registers": {k: v for k, v in {**map, **keys}.items() if k not in without}}


MISTAKES = {
    "no map": ({"id": 2}, f"{AT}: missing key 'registers'"),
    "no position": (changed(without=["position"]), f"{MAP}: missing key 'position'"),
    "unknown point": (
        changed(efort_target={"register": 1}),
        f"{MAP}: unknown key 'efort_target'; did you mean 'effort_target'?",
    ),
    "no register": (changed(velocity={"type": "int32"}), f"{MAP}.velocity: missing key 'register'"),
    "no type": (
        changed(velocity={"register": 1, "type": "int64"}),
        f"{MAP}.velocity.type: expected one of int16, uint16, int32, uint32, float32; got 'int64'",
    ),
    "another unit": (
        changed(effort={"register": 1, "scale": "1 A"}),
        f"{MAP}.effort.scale: unit 'A' does not fit here; use N*m, N*cm, mN*m",
    ),
    "too large": (
        changed(effort={"register": 70000}),
        f"{MAP}.effort.register: must be at most 65535, is 70000",
    ),
    "no target": (
        changed(without=["effort_target", "velocity_target", "position_target"]),
        f"{MAP}: give 'effort_target', 'velocity_target' or 'position_target'",
    ),
    "not this target": (
        changed(without=["effort_target"]),
        f"{MAP}: mode 'effort' needs 'effort_target'; add it, or give another 'mode'",
    ),
    "functions": (
        changed(read=4),
        f"{MAP}: function 23 reads no input registers; give 'write: 16' or 'write: 6' with 'read: 4'",
    ),
    "two registers by one": (
        changed(FLOATS, write=6),
        f"{MAP}: function 6 writes one register, and 'effort_target' has two; give 'write: 16'",
    ),
    "words": (
        changed(control={"register": 1, "on": [], "off": [0], "clear": [2]}),
        f"{MAP}.control: 'on', 'off' and 'clear' are lists of numbers from 0 to 65535",
    ),
    "on is off": (
        changed(control={"register": 1, "on": [1, 0], "off": [0], "clear": [2]}),
        f"{MAP}.control: 'on' and 'off' end with the same number; one of them is wrong",
    ),
    "faults": (
        changed(faults={"high": "overcurrent"}),
        f"{MAP}: 'faults' has a text for each fault code; 'high' has none",
    ),
}


def message(tmp_path, b, **keys) -> str:
    """The error without the path of the rig."""
    data = rig({"type": "modbus", "port": PORT, **keys}, [{"id": 1, "registers": WHOLE_NUMBERS}, b])
    data["schedule"]["step"] = "50 ms"
    (tmp_path / "rig.yaml").write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        load_rig(tmp_path / "rig.yaml").run(0.1)
    return str(caught.value).removeprefix(f"{tmp_path}/rig.yaml:")


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_map_is_one_line_at_its_place(name, tmp_path):
    joint, expected = MISTAKES[name]
    assert message(tmp_path, joint, watchdog=0.2) == expected


def test_a_watchdog_that_would_trip_between_two_commands(tmp_path):
    expected = "1 drivers[0].watchdog: must be longer than 2 periods of 0.05 s, is 0.1 s"
    assert message(tmp_path, changed(), watchdog=0.1) == expected


def test_a_cycle_that_does_not_fit_names_its_load(tmp_path):
    # each an exchange of 15 and 21 bytes, a response and a pause of 1.75 ms: 2 · 84.875 ms
    what = "2 drives every 50 ms need 3.4 times the capacity of the bus; use a longer schedule.step, a higher bit rate,"
    assert message(tmp_path, changed(), watchdog=0.2, response_time=0.08).startswith(f"1 drivers[0]: {what}")
