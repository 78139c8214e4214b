"""The bus traffic of a recording played to the drivers of a rig, without hardware: what they do otherwise now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cosim.core.driver_contract import DriverContext
from cosim.core.errors import InputError
from cosim.execution.hardware.traffic.player import PlaybackConnection, PlayedDifference, PlayedTraffic, play
from cosim.execution.hardware.traffic.traffic_log import calls_of
from cosim.output.traffic_messages import BusChannel
from cosim.output.traffic_reader import RecordedTraffic
from cosim.rig.foreign_rig import files_of_recording
from cosim.rig.rig import Rig, load_rig
from cosim.rig.sections.drivers import DriverSpec
from cosim.rig.unpacked_rig import rig_of_files

DRIVERS_ALONE = tuple(f"{key}=null" for key in ("controllers", "parts", "couplings", "scenario", "keep", "telemetry"))


class ReplayedBus(NamedTuple):
    """A driver that got its traffic again. joint: of the first difference, empty where it is not known."""

    bus: BusChannel
    played: PlayedTraffic
    joint: str = ""

    @property
    def first(self) -> PlayedDifference | None:
        return self.played.first


def rig_of_recording(traffic: RecordedTraffic, trust: bool = False) -> Rig:
    """The rig as it ran, without what its drivers do not need, from the files in the recording. trust: see
    `rig_of_files`. Raises InputError where they are missing, InputErrors for what is not installed here and for code
    that is not trusted."""
    metadata = traffic.samples.metadata
    if "as_run" not in metadata:
        what = "does not hold the files of its rig; give the rig: cosim replay --bus F.mcap RIG"
        raise InputError(what, traffic.path)
    files = files_of_recording(traffic.path)
    return rig_of_files(files, metadata["as_run"], DRIVERS_ALONE, True, trust, traffic.path)


def replay_bus(path: str | Path, rig: Path | None, trust: bool = False) -> list[ReplayedBus]:
    """rig: whose drivers get the traffic; None: the rig as it ran, from the files in the recording; trust: see
    `rig_of_files`.

    Raises InputError for a recording without bus traffic, without its beginning, or of another rig.
    """
    traffic = RecordedTraffic(path)
    loaded = rig_of_recording(traffic, trust) if rig is None else load_rig(rig, interpret=True)
    place = traffic.path if rig is None else str(rig)
    chosen = [(bus, _driver_of(loaded, bus, place)) for bus in traffic.buses]
    return [_replayed(traffic, bus, spec, loaded.contexts[spec.name]) for bus, spec in chosen]


def frame_type(spec: DriverSpec, context: DriverContext) -> Any:
    """What makes a CAN frame of its fields, by what the driver sends and receives; None on a serial link."""
    traffic = spec.family.traffic(spec.plugin.params, context)
    return next((type(item) for item in (*traffic.out, *traffic.back) if not isinstance(item, bytes)), None)


def joints_of_frames(spec: DriverSpec, context: DriverContext, sent: bool) -> Mapping[tuple[int, bool], str]:
    """(identifier, extended) -> the joint to or from whose drive alone frames with it go in a cycle; empty on a serial
    link."""
    found: dict[tuple[int, bool], str] = {}
    shared = set()
    for k, name in enumerate(context.joints):
        one = replace(context, joints=(name,), wiring=(context.wiring[k],), limits=context.limits.at(np.array([k])))
        traffic = spec.family.traffic(spec.plugin.params, one)
        items = traffic.out if sent else traffic.back
        keys = {(item.id, item.extended) for item in items if not isinstance(item, bytes)}
        shared |= keys & found.keys()
        found |= dict.fromkeys(keys, name)
    return {key: name for key, name in found.items() if key not in shared}


def _driver_of(rig: Rig, bus: BusChannel, place: str) -> DriverSpec:
    """The driver whose traffic it is. Raises InputError."""
    own = f"the recording has the traffic of the driver '{bus.driver}' ({bus.family}: {', '.join(bus.joints)})"
    spec = next((spec for spec in rig.spec.drivers if spec.name == bus.driver), None)
    fix = "give the rig that was recorded"
    if spec is None:
        known = ", ".join(f"'{each.name}'" for each in rig.spec.drivers) or "none"
        raise InputError(f"{own}, the rig has other drivers: {known}; {fix}", place)
    if (spec.plugin.name, spec.joints) != (bus.family, bus.joints):
        other = f"{spec.plugin.name}: {', '.join(spec.joints)}"
        raise InputError(f"{own}, the rig's driver is another one ({other}); {fix}", place)
    return spec


def _replayed(traffic: RecordedTraffic, bus: BusChannel, spec: DriverSpec, context: DriverContext) -> ReplayedBus:
    link = PlaybackConnection(bus.connection)
    driver = spec.family.load(spec.plugin.params, replace(context, ends=(link, None)))
    frame = frame_type(spec, context) if bus.can else None
    played = play(driver, link, calls_of(traffic.entries(bus, frame)))
    if not played.calls:
        what = f"the beginning of the traffic of '{bus.driver}' is missing"
        raise InputError(f"{what}, without which nothing can be played; record the run again", traffic.path)
    joint = "" if played.first is None else _joint_of(played.first, spec, context)
    return ReplayedBus(bus, played, joint)


def _joint_of(difference: PlayedDifference, spec: DriverSpec, context: DriverContext) -> str:
    if difference.joint is not None:
        return context.joints[difference.joint]
    if len(context.joints) == 1:
        return context.joints[0]
    items: Sequence[Any] = (difference.recorded, difference.now) if difference.what == "item" else ()
    frames = [item for item in items if item is not None and not isinstance(item, bytes)]
    known = joints_of_frames(spec, context, sent=True) if frames else {}
    return next((known[item.id, item.extended] for item in frames if (item.id, item.extended) in known), "")
