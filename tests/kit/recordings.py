"""Recordings as independent readers find them: the packages mcap and mcap-protobuf-support."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory


class RecordedMessage(NamedTuple):
    """t_ns: publish time; fields: by the names of their signals."""

    schema: str
    topic: str
    t_ns: int
    fields: dict[str, Any]


class _Json:
    def decoder_for(self, message_encoding: str, schema: object) -> Any:
        return json.loads if message_encoding == "json" else None


def recorded_messages(path: Path) -> list[RecordedMessage]:
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory(), _Json()])
        return [
            RecordedMessage(schema.name, channel.topic, message.publish_time, _fields(decoded))
            for schema, channel, message, decoded in reader.iter_decoded_messages()
        ]


def _fields(decoded: Any) -> dict[str, Any]:
    if isinstance(decoded, dict):
        return decoded
    return {field.json_name: getattr(decoded, field.name) for field in decoded.DESCRIPTOR.fields}
