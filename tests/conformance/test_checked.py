"""What a driver refuses by the rig alone is refused by `cosim check` in the same words as by `cosim run`."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from cosim.core.errors import InputError
from tests.kit.command import Command

from .families import JOINTS, Case, addresses, cases, lines, rig, section, write_rig

CASES = tuple(case for case in cases() if not case.compiled and case.line != "udp_multicast")
# of what is the same for all families on a kind of connection
ONE_OF_EACH_LINE = {case.line: case for case in reversed(CASES)}.values()
STEP = 0.02  # s, of these rigs
Change = Callable[[dict[str, Any]], object]


def joint(data: dict[str, Any], name: str = JOINTS[0]) -> dict[str, Any]:
    return data["drivers"][0]["joints"][name]


def limits(data: dict[str, Any]) -> dict[str, Any]:
    return data["joints"][JOINTS[0]]["limits"]


# mistakes of a family: what is wrong -> kind of connection, change
MISTAKES: dict[str, dict[str, tuple[str, Change]]] = {
    "cia402": {"master": ("virtual", lambda d: d["drivers"][0].update(master=1))},
    "mit": {
        "master": ("virtual", lambda d: joint(d).update(master=2)),
        "effort": ("virtual", lambda d: limits(d).update(effort=50)),
        "velocity": ("virtual", lambda d: limits(d).update(velocity=50)),
        "position": ("virtual", lambda d: limits(d).update(upper=50)),
        "no kd": ("virtual", lambda d: (d["drivers"][0].update(mode="velocity"), joint(d).update(kd=0))),
    },
    "vesc": {
        "forward on a bus": ("virtual", lambda d: joint(d).update(forward=True)),
        "two with the port": ("pty", lambda d: joint(d, "b").update(forward=False)),
        "too fast": ("virtual", lambda d: limits(d).update(velocity=400)),
    },
    "odrive": {
        "no endpoints": ("virtual", lambda d: d["drivers"][0].update(endpoints="none.json")),
        "id on a port": ("pty", lambda d: (joint(d).pop("axis"), joint(d).update(id=3))),
    },
    "modbus": {"no effort": ("pty", lambda d: joint(d)["registers"].pop("effort_target"))},
    "serial_text": {
        "no command": ("pty", lambda d: d["drivers"][0].update(patterns={"effort": ""})),
        "no id": ("pty", lambda d: d["drivers"][0].update(patterns={"state": "S {position} {velocity}"})),
    },
    "dynamixel": {"no current": ("pty", lambda d: joint(d).update(model="XL430-W250"))},
}


def refused(command: Command, data: dict[str, Any], tmp_path: Any) -> str:
    """The error of both commands."""
    path = write_rig(tmp_path / "rig.yaml", data)
    (found,) = command.refuses("check", path)
    code, _, errors = command("run", path, "--yes")
    assert (code, errors) == (2, [found])
    return found


def of(case: Case, tmp_path: Any, **keys: Any) -> dict[str, Any]:
    return rig(section(case, tmp_path, **keys), copy.deepcopy(addresses(case)))


@pytest.mark.parametrize("case", ONE_OF_EACH_LINE, ids=str)
def test_whatever_a_driver_refuses_when_it_is_made(case, command, tmp_path, monkeypatch):
    data = of(case, tmp_path)

    def load(params, context):
        raise InputError("fits no drive", context.place("joints", "b"))

    monkeypatch.setattr(case.module, "load", load)
    monkeypatch.setattr(case.module, "traffic", lambda *_: pytest.fail("the driver is made first"))
    assert refused(command, data, tmp_path).endswith("drivers[0].joints.b: fits no drive")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_watchdog_that_trips_between_two_commands(case, command, tmp_path):
    assert ".watchdog: " in refused(command, of(case, tmp_path, watchdog=STEP), tmp_path)


@pytest.mark.parametrize(
    ("family", "mistake"), [(family, mistake) for family, row in MISTAKES.items() for mistake in row]
)
def test_mistakes_of_a_family(family, mistake, command, tmp_path, said):
    line, change = MISTAKES[family][mistake]
    data = of(Case(family, line), tmp_path)
    change(data)
    said(refused(command, data, tmp_path))


@pytest.mark.parametrize("case", ONE_OF_EACH_LINE, ids=str)
def test_a_connection_that_no_machine_has(case, command, tmp_path):
    key = lines(case.module)[case.line][0]
    wrong = {"bus": [{"interface": "sockecan"}, {"channel": ""}, {"interface": "udp_multicast", "channel": "10.0.0.1"}]}
    for change in wrong.get(key, [{"port": ""}]):
        data = of(case, tmp_path)
        data["drivers"][0][key] |= change
        assert f"drivers[0].{key}." in refused(command, data, tmp_path)


@pytest.mark.parametrize("case", ONE_OF_EACH_LINE, ids=str)
def test_a_connection_that_this_machine_has_not_now(case, command, tmp_path):
    """It may be plugged in later: `check` warns."""
    key = lines(case.module)[case.line][0]
    data = of(case, tmp_path)
    if key == "bus":
        data["drivers"][0][key] |= {"interface": "socketcan", "channel": "none0"}
    path = write_rig(tmp_path / "rig.yaml", data)
    code, out, errors = command("check", path)
    (warning,) = [line.strip() for line in out.splitlines() if f"drivers[0].{key}." in line]
    assert (code, errors) == (0, [])
    code, _, errors = command("run", path, "--yes")
    assert (code, warning) == (2, f"warning: {errors[0]}")
