"""Runs whose bus traffic is recorded, and its replay: a CAN bus and a serial port with emulated drives."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cosim.core.recordings.index import read_index
from cosim.execution.hardware.traffic import traffic_log
from cosim.execution.hardware.traffic.traffic_log import Passing
from cosim.output.traffic_reader import RecordedTraffic
from cosim.plugins.drivers import dynamixel
from cosim.plugins.drivers.transport import host_link
from cosim.rig.bus_replay import frame_type, joints_of_frames, replay_bus, rig_of_recording
from cosim.rig.rig import load_rig
from tests.kit.emulated import emulated
from tests.kit.given import beside
from tests.kit.refusals import refusal

GIVEN = beside(__file__)

RIG = GIVEN["rig"]
BUS = "recording.bus=true"


def rig_of(folder, text=RIG):
    path = folder / "rig.yaml"
    text = text.replace("CHANNEL", f"recorded {folder}").replace("PORT", str(folder / "port"))
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(folder, run) of `run.mcap` with bus traffic, `plain.mcap` without."""
    folder = tmp_path_factory.mktemp("bus")
    path = rig_of(folder)
    with emulated(path, "schedule.step=0.001"):
        run = load_rig(path, [BUS], interpret=True).run(record=folder / "run.mcap")
    load_rig(path, ["drivers=[]", "emulator=null"]).run(0.01, record=folder / "plain.mcap")
    return folder, run


def entries_of(folder, driver):
    traffic = RecordedTraffic(folder / "run.mcap")
    rig = rig_of_recording(traffic)
    bus = next(bus for bus in traffic.buses if bus.driver == driver)
    spec = next(spec for spec in rig.spec.drivers if spec.name == driver)
    return list(traffic.entries(bus, frame_type(spec, rig.contexts[driver]) if bus.can else None))


def test_the_recording_has_the_connections(recorded):
    folder, _ = recorded
    buses = RecordedTraffic(folder / "run.mcap").buses
    assert [(bus.driver, bus.family, bus.joints, bus.can) for bus in buses] == [
        ("moteus", "moteus", ("a", "c"), True),
        ("dynamixel", "dynamixel", ("b",), False),
    ]
    assert buses[0].connection == f"virtual recorded {folder}" and buses[1].connection == str(folder / "port")


@pytest.mark.parametrize("driver", ["moteus", "dynamixel"])
def test_traffic_is_complete_from_opening_to_closing(recorded, driver):
    folder, run = recorded
    entries = entries_of(folder, driver)
    calls = [entry.what for entry in entries if entry.what in traffic_log.CALLS]
    before = calls[: calls.index("enable")]  # with motors off the joints are measured alone
    assert before[0] == "open" and set(before[1:]) == {"read"}
    assert calls[-1] == "close" and "stop" in calls
    (report,) = (each for each in run.connections if each["driver"] == driver)
    assert calls.count("write") >= len(run.t) - report["unsent"]
    assert [entry.number for entry in entries] == list(range(len(entries)))
    sent = [entry for entry in entries if entry.what == Passing.SENT]
    assert len(sent) == report["sent"]
    assert sum(entry.what == Passing.RECEIVED for entry in entries) == report["received"]
    stopped = [entry for entry in entries if entry.what == "stop"]
    assert [entry.what for entry in entries[-2:]] == ["returned", "ended"] and stopped[0].run_ns < entries[-1].run_ns
    # the first command is in tick 0, the motors were enabled before
    enabled = next(entry for entry in entries if entry.what == "enable")
    assert enabled.run_ns < 0 < entries[-1].run_ns


def test_commands_and_states_are_those_of_the_signals(recorded):
    folder, run = recorded
    entries = entries_of(folder, "moteus")
    writes = [np.frombuffer(entry.content.numbers).reshape(5, -1) for entry in entries if entry.what == "write"]
    # the drive closes the loop of the controller; on a machine that stalls a command may expire unsent
    (unsent,) = (each["unsent"] for each in run.connections if each["driver"] == "moteus")
    commands, references = [write[0, 0] for write in writes[unsent - len(run.t) :]], iter(run["a/reference_position"])
    assert all(command in references for command in commands)  # in their order
    ends = [entry.content.numbers for entry in entries if entry.what == "returned" and entry.content.numbers]
    states = [np.frombuffer(numbers).reshape(4, -1)[0, 1] for numbers in ends]
    assert set(run["c/measured_position"].tolist()) <= set(states)


def test_drivers_do_the_same_again(recorded):
    folder, run = recorded
    for rig in (None, folder / "rig.yaml"):
        found = replay_bus(folder / "run.mcap", rig)
        assert [each.first for each in found] == [None, None]
        assert [each.bus.driver for each in found] == ["moteus", "dynamixel"]
        assert all(each.played.measured >= len(run.t) and each.played.missing is None for each in found)


def test_another_ratio_is_found(recorded, tmp_path):
    folder, _ = recorded
    changed = rig_of(tmp_path, RIG.replace("c: {id: 2}", "c: {id: 2, ratio: 1.01}").replace("CHANNEL", "other"))
    moteus, dynamixel = replay_bus(folder / "run.mcap", changed)
    assert dynamixel.first is None and moteus.joint == "c"
    assert moteus.first is not None and moteus.played.differing


def test_the_joint_of_a_frame(recorded):
    folder, _ = recorded
    rig = rig_of_recording(RecordedTraffic(folder / "run.mcap"))
    moteus, dynamixel = rig.spec.drivers
    context = rig.contexts["moteus"]
    assert joints_of_frames(moteus, context, sent=True) == {(0x8001, True): "a", (0x8002, True): "c"}
    assert joints_of_frames(moteus, context, sent=False) == {(0x100, False): "a", (0x200, False): "c"}
    assert joints_of_frames(dynamixel, rig.contexts["dynamixel"], sent=True) == {}
    assert frame_type(dynamixel, rig.contexts["dynamixel"]) is None


def test_the_compiled_loop_calls_drivers_whose_traffic_is_recorded(tmp_path):
    path = rig_of(tmp_path)
    rig = load_rig(path, [BUS], interpret=False)
    assert rig.called == dict.fromkeys(("moteus", "dynamixel"), "bus traffic is recorded in Python")
    with emulated(path, "schedule.step=0.001"):
        run = rig.run(record=tmp_path / "run.mcap")
    where = run.summary["engine"]
    assert (where["loop"], where["driver dynamixel"]) == ("compiled", "Python: bus traffic is recorded in Python")
    found = replay_bus(tmp_path / "run.mcap", None)
    assert [each.first for each in found] == [None, None]
    assert all(each.played.measured >= len(run.t) for each in found)


class FullLog(traffic_log.TrafficLog):
    """A log that is full from the 20th command on."""

    def add(self, driver, t_ns, what, content, times=()):
        if what == Passing.WRITE and self._numbers[driver] > 20 and content.whole[0] > 0:
            self.commands = getattr(self, "commands", 0) + 1
            self._room = 0 if self.commands > 20 else self._room
        super().add(driver, t_ns, what, content, times)


def test_entries_that_are_lost_are_counted_and_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(traffic_log, "TrafficLog", FullLog)
    path = rig_of(tmp_path)
    with emulated(path, "schedule.step=0.001"):
        run = load_rig(path, [BUS], interpret=True).run(record=tmp_path / "run.mcap")
    lost = [event for event in run.events if "could not be recorded" in event.name]
    assert [event.level for event in lost] == ["warning", "warning"]
    for event, driver in zip(lost, ("moteus", "dynamixel"), strict=True):
        what = f"of the entries of the bus traffic of '{driver}' could not be recorded"
        assert re.fullmatch(rf"[\d,]+ {what}: the machine is too busy, or the disk too slow", event.name)
    found = replay_bus(tmp_path / "run.mcap", None)
    assert all(each.played.missing is not None and each.first is None and each.played.calls > 5 for each in found)


def test_recordings_that_are_refused(recorded, tmp_path, said):
    folder, _ = recorded
    said(refusal(replay_bus, folder / "plain.mcap", None).replace(str(folder), ""))
    for text in (
        RIG.replace("type: moteus,", "type: moteus, name: arm,"),
        RIG.replace("a: {id: 1}, c: {id: 2}", "a: {id: 1}"),
        RIG[: RIG.index("drivers")] + RIG[RIG.index("mechanism") : RIG.index("emulator")],
    ):
        said(refusal(replay_bus, folder / "run.mcap", rig_of(tmp_path, text)))


def test_a_family_that_is_not_installed(recorded, said, monkeypatch):
    path = recorded[0] / "run.mcap"
    index = read_index(path)
    name = index.metadata["as_run"]
    changed = index.files()[name].replace(b"type: moteus", b"type: moteux")
    monkeypatch.setattr(type(index), "files", lambda self: {name: changed})
    said(refusal(replay_bus, path, None), r"^\S+/")


def test_a_recording_that_is_damaged(recorded, tmp_path):
    path, data = tmp_path / "run.mcap", bytearray((recorded[0] / "run.mcap").read_bytes())
    chunks = [place.start for place in read_index(recorded[0] / "run.mcap").chunks]
    data[chunks[0] + 200] ^= 0xFF
    path.write_bytes(data)
    alone = "the recording is damaged: it has no tick that can be read"
    first = "the beginning of the traffic of 'moteus' is missing, without which nothing can be played"
    what = alone if len(chunks) == 1 else first
    assert refusal(replay_bus, path, None) == f"{path}: {what}; record the run again"


def test_a_driver_whose_connection_is_not_tapped(tmp_path, said, monkeypatch):
    monkeypatch.setattr(dynamixel, "host", lambda params, context: host_link(params.port, context.place))
    rig = load_rig(rig_of(tmp_path), [BUS], interpret=True)
    said(refusal(rig.run, record=tmp_path / "run.mcap"))
    assert not (tmp_path / "run.mcap").exists()
