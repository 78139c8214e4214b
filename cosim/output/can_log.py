"""The CAN frames of recorded bus traffic as a log of other programs, by python-can: candump .log, Vector .asc, .blf."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import Any

from cosim.core.errors import InputError
from cosim.execution.hardware.traffic.traffic_log import ITEMS, Passing
from cosim.output.output_files import check_output, identity, write_error
from cosim.output.traffic_reader import RecordedTraffic

SUFFIXES = (".log", ".asc", ".blf")


def write_can_log(recording: Path, path: Path) -> tuple[int, list[str]]:
    """(frames that were written, drivers whose traffic is not of a CAN bus). The channels are the names of the drivers,
    numbers in formats that have no names.

    Raises InputError for a recording without frames and for a file that cannot be written.
    """
    from can import Logger

    check_output(path, "--to", SUFFIXES, {identity(recording): "the recording"})
    traffic = RecordedTraffic(recording)
    buses = [bus for bus in traffic.buses if bus.can]
    if not buses:
        raise InputError("holds no traffic of a CAN bus, but of serial ports only; no log has these", str(recording))
    streams = [traffic.entries(bus, lambda *fields: fields) for bus in buses]
    items = heapq.merge(*((e for e in stream if e.what in ITEMS) for stream in streams), key=lambda entry: entry.t_ns)
    start_ns, count = traffic.samples.start_ns, 0
    named = path.suffix == SUFFIXES[0]
    try:
        with Logger(str(path)) as log:
            for entry in items:
                channel = traffic.buses[entry.driver].driver if named else entry.driver
                log(_message(entry.content, (start_ns + entry.run_ns) * 1e-9, entry.what == Passing.RECEIVED, channel))
                count += 1
    except OSError as cause:
        raise write_error(path, "log", cause) from cause
    return count, [bus.driver for bus in traffic.buses if not bus.can]


def _message(frame: tuple[Any, ...], seconds: float, received: bool, channel: str | int) -> Any:
    from can import Message

    identifier, data, extended, fd, switched, remote, _ = frame
    return Message(
        timestamp=seconds,
        arbitration_id=identifier,
        is_extended_id=extended,
        is_remote_frame=remote,
        is_fd=fd,
        bitrate_switch=switched,
        data=None if remote else data,
        dlc=len(data),
        is_rx=received,
        channel=channel,
    )
