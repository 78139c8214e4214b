"""The outputs of a run while it runs: its recording and its stream, each in a process of its own in real time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cosim.core.types import Level, Sink
from cosim.output.output_files import RECORDING, check_suffix
from cosim.rig.run.recorded_run import StreamSummary
from cosim.rig.run.run_metadata import RunMetadata
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_block import TickBlock

if TYPE_CHECKING:
    from cosim.output.evaluation import Evaluation
    from cosim.output.remote_sink import RemoteSink
    from cosim.rig.sections.rig_spec import TelemetrySpec

BACKLOG = 0.5  # s of ticks that may wait for a stream that is too slow


@dataclass
class Outputs:
    """Where a run sends its ticks and events: the recording, the stream, and sinks in its process.

    sinks: of blocks that this process evaluates, and of events; processes: of the sinks, those that have one; remotes:
    of these, those that evaluate blocks themselves; stream: of the processes, the stream.
    """

    endpoint: str | None = None  # of the stream
    sinks: list[Sink] = field(default_factory=list)
    processes: list[RemoteSink] = field(default_factory=list)
    remotes: list[RemoteSink] = field(default_factory=list)
    stream: RemoteSink | None = None
    failed: list[RemoteSink] = field(default_factory=list)  # of the processes, those whose end was reported
    recording: Any = None  # the sink of the recording
    schema: Any = field(default_factory=dict)  # of the stream, a Schema
    describe_stream: Callable[[Any], None] | None = None  # publishes a schema
    open: bool = False  # the stream, to other users of this machine

    def add(self, block: TickBlock) -> None:
        """Hand finished ticks to the processes that evaluate them; never waits."""
        for remote in self.remotes:
            remote.ticks(block)

    def event(self, t_ns: int, what: str, level: Level = "info") -> None:
        for sink in self.sinks:
            sink.event(t_ns, what, level)

    def change(self, t_ns: int, tick: int, name: str, value: Sequence[float]) -> None:
        for sink in self.sinks:
            sink.change(t_ns, tick, name, value)

    def describe(self, values: Mapping[str, Any] = MappingProxyType({}), **changes: Any) -> None:
        """Replace parts of the schema of the stream; values: of parameters."""
        if self.describe_stream is None:
            return
        self.schema.update(changes)
        for name, value in values.items():
            self.schema["parameters"][name]["value"] = value
        self.describe_stream(self.schema)

    @property
    def evaluated_here(self) -> list[Sink]:
        return [] if self.remotes else self.sinks

    def new_failures(self) -> list[str]:
        """Why the recording or the stream has failed, each once."""
        new = [process for process in self.processes if process.failure and process not in self.failed]
        self.failed += new
        ends = {True: "; the run goes on without telemetry", False: ""}
        return [process.failure + ends[process is self.stream] for process in new]

    @property
    def summary(self) -> StreamSummary | None:
        if self.endpoint is None:
            return None
        missed, failure = (0, None) if self.stream is None else (self.stream.missed, self.stream.failure or None)
        return {"endpoint": self.endpoint, "open": self.open, "missed": missed, "failure": failure}


def open_outputs(
    rig: WiredRig,
    metadata: RunMetadata,
    stack: ExitStack,
    record: str | Path | None,
    evaluation: Evaluation,
    traffic: bool = False,
) -> Outputs:
    """Open the recording and the stream of a run, closed by `stack`.

    evaluation: copied to processes; traffic: whether the bus traffic will be recorded.
    Raises InputError or RunError when one cannot be opened.
    """
    spec = rig.run_spec
    if record is not None:
        check_suffix(Path(record), RECORDING, "record")
    if record is None and spec.telemetry.publish is None:
        return Outputs()
    from cosim.output.sinks import SinkConfig, open_sinks
    from cosim.output.stream.stream_sink import StreamSink
    from cosim.rig.run.provenance import attachments_of, recording_metadata
    from cosim.rig.run.stream import schema_of, stream_config_of
    from cosim.rig.run.traffic_recording import channels_of_buses
    from cosim.rig.scene import drawing_text_of, view_of

    metadata = replace(metadata, drawing=drawing_text_of(rig))
    start_ns, schema = time.time_ns(), schema_of(rig, metadata)
    channels = tuple(metadata.units.items())
    configs = []
    if spec.telemetry.publish is not None:  # first: a failure here must not overwrite an existing recording
        configs.append(SinkConfig(spec.name, channels, stream=stream_config_of(rig, metadata, start_ns, schema)))
    if record is not None:
        configs.append(
            SinkConfig(
                name=spec.name,
                channels=channels,
                attachments=attachments_of(rig),
                metadata=recording_metadata(rig, metadata, start_ns),
                record=str(record),
                encoding=spec.recording.encoding,
                numbers=spec.recording.numbers,
                split_size=spec.recording.split_size,
                split_time=spec.recording.split_time,
                view=view_of(rig, tuple(metadata.units), spec.recording.frame_rate),
                start_ns=start_ns,
                buses=channels_of_buses(rig) if traffic else (),
            )
        )
    if spec.schedule.pacing is None:
        sinks = [sink for config in configs for sink in open_sinks(stack, config)]
        outputs = Outputs(None, sinks, recording=None if record is None else sinks[-1], schema=schema)
        for sink in sinks:
            if isinstance(sink, StreamSink):
                outputs.endpoint, outputs.describe_stream = sink.endpoint, sink.describe
                outputs.open = _is_open(spec.telemetry, sink.endpoint)
        return outputs
    from cosim.output.remote_sink import RemoteSink

    newest = round(BACKLOG * 1e9 * spec.schedule.rate / spec.schedule.step_ns)
    remotes = [
        stack.enter_context(
            RemoteSink(config, None if rig.interpret else evaluation, newest if config.stream else None)
        )
        for config in configs
    ]
    outputs = Outputs(None, list(remotes), remotes, [] if rig.interpret else remotes, schema=schema)
    outputs.recording = None if record is None else remotes[-1]
    if spec.telemetry.publish is not None:
        outputs.stream = remotes[0]
        outputs.endpoint, outputs.describe_stream = outputs.stream.endpoint, outputs.stream.describe
        outputs.open = _is_open(spec.telemetry, outputs.stream.endpoint)
    return outputs


def _is_open(telemetry: TelemetrySpec, endpoint: str) -> bool:
    """Whether other users of this machine can read a stream."""
    from cosim.core.access.curve import is_private

    return telemetry.key is None and not is_private(endpoint)
