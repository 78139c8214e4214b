"""Symptoms in the bus traffic before a stop: answers that did not come or were damaged, drives that fell silent,
connections that failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from cosim.apps.post_mortem.symptom import Symptom
from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError, listed
from cosim.core.trust.data_only import refused_code
from cosim.execution.hardware.traffic.player import PlaybackConnection, play
from cosim.execution.hardware.traffic.traffic_log import DriverCall, MissingEntries, Passing, TrafficEntry, calls_of
from cosim.output.traffic_messages import BusChannel
from cosim.output.traffic_reader import RecordedTraffic
from cosim.rig.bus_replay import frame_type, joints_of_frames, rig_of_recording
from cosim.rig.sections.drivers import DriverSpec

SILENT = 3.0  # times the median interval between its answers before, from which on a drive was silent
FAILURES = frozenset({Passing.SEND_FAILED, Passing.RECEIVE_FAILED})
CYCLE = frozenset({Passing.READ, Passing.WRITE})
Joints = Mapping[tuple[int, bool], str]  # (identifier, extended) -> joint, of the frames that drives send in a cycle


def traffic_symptoms(path: str, t: float, last: float) -> list[Symptom]:
    """path: of a recording; t: of the stop [s]; last: time before it that is looked at [s]. None of a recording without
    traffic, or whose rig cannot be read here. Raises InputError where its drivers need code of the recording."""
    found: list[Symptom] = []
    try:
        traffic = RecordedTraffic(path)
        rig = rig_of_recording(traffic)
    except InputError as error:
        if refused_code(error):
            raise
        return found
    with suppress(InputError):
        specs = {spec.name: spec for spec in rig.spec.drivers}
        for bus in traffic.buses:
            found += _symptoms_of(traffic, bus, specs[bus.driver], rig.contexts[bus.driver], t, last)
    return found


def _symptoms_of(
    traffic: RecordedTraffic, bus: BusChannel, spec: DriverSpec, context: DriverContext, t: float, last: float
) -> list[Symptom]:
    begin_ns, end_ns = (round(time * 1e9) for time in (t - last, t))
    frame = frame_type(spec, context) if bus.can else None
    joints = joints_of_frames(spec, context, sent=False) if bus.can else {}
    link = PlaybackConnection(bus.connection)
    driver = spec.family.load(spec.plugin.params, replace(context, ends=(link, None)))
    calls: list[DriverCall] = []
    damaged: list[DriverCall] = []
    count = 0
    for call in calls_of(traffic.entries(bus, frame)):
        if isinstance(call, MissingEntries) or call.begin.run_ns > end_ns:
            break
        inside = call.begin.run_ns >= begin_ns
        if call.what in CYCLE and not inside:
            continue  # of the cycle a driver keeps nothing that the next one needs
        before = driver.lost
        play(driver, link, (call,))
        if inside:
            calls.append(call)
            if driver.lost > before:
                count += driver.lost - before
                damaged.append(call)
    found = [*failures(bus, calls), *silences(bus, calls, joints)]
    if damaged:
        names = silent_in(damaged[-1], joints)
        of = f" of {listed(names)}" if names else ""
        what = f"bus of '{bus.driver}': an answer{of} did not come or was damaged"
        more = f", the last one of {count}" if count > 1 else ""
        found.append(Symptom(damaged[-1].begin.run_ns * 1e-9, what + more, True))
    return found


def failures(bus: BusChannel, calls: Sequence[DriverCall]) -> Iterator[Symptom]:
    """The first failure of the connection."""
    for entry in (entry for call in calls for entry in call.entries if entry.what in FAILURES):
        what = entry.content.text.partition(": ")[2]
        yield Symptom(entry.run_ns * 1e-9, f"bus of '{bus.driver}': {what}", True)
        return


def silences(bus: BusChannel, calls: Sequence[DriverCall], joints: Joints) -> Iterator[Symptom]:
    """Drives whose answers ended before the last call; on a serial link all of them together. Intervals are on the
    clock of the driver: the time of a run stands still where it is late. An answer may have several items: they count
    as one of their call."""
    heard: dict[str, list[TrafficEntry]] = {}
    for call in calls:
        answers: dict[str, TrafficEntry] = {}
        for entry in (entry for entry in call.items if entry.what == Passing.RECEIVED):
            item = entry.content
            answers[listed(bus.joints) if isinstance(item, bytes) else joints.get((item.id, item.extended), "")] = entry
        for name, entry in answers.items():
            heard.setdefault(name, []).append(entry)
    heard.pop("", None)
    for name, entries in heard.items():
        usual_ns = float(np.median(np.diff([entry.t_ns for entry in entries]))) if len(entries) > 1 else np.inf
        silence_ns = calls[-1].begin.t_ns - entries[-1].t_ns
        if silence_ns > SILENT * usual_ns:
            what = f"bus of '{bus.driver}': the last answer of {name}, {silence_ns * 1e-6:.4g} ms before the stop"
            usual = f"answers had come every {usual_ns * 1e-6:.4g} ms"
            yield Symptom(entries[-1].run_ns * 1e-9, f"{what}; {usual}", True, silence_ns * 1e-9)


def silent_in(call: DriverCall, joints: Joints) -> list[str]:
    """The joints of which no frame came in a call."""
    items = [entry.content for entry in call.items if entry.what == Passing.RECEIVED]
    heard = {joints.get((item.id, item.extended)) for item in items if not isinstance(item, bytes)}
    return sorted(set(joints.values()) - heard)
