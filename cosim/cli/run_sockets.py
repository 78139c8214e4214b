"""The sockets of a run as the options `--telemetry` and `--control` give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from cosim.core.access.binding import control_address, stream_address
from cosim.rig.reading.yaml_source import Override, load_yaml

# key of the section `telemetry` -> its option, and what returns the address without one
OPTIONS = {"publish": ("--telemetry", stream_address), "control": ("--control", control_address)}


def sockets_of(rig: Path, overrides: Iterable[Override], given: Mapping[str, str | None]) -> list[Override]:
    """given: endpoint by key; empty for the rig's or the usual one, None for what the rig has."""
    texts = [text if isinstance(text, str) else text[0] for text in overrides]
    found: list[Override] = []
    for key, endpoint in given.items():
        option, usual = OPTIONS[key]
        own = any(text.startswith(f"telemetry.{key}=") for text in texts)
        if endpoint or (endpoint == "" and not own and not _has_own(rig, key)):
            found.append((f"telemetry.{key}={endpoint or usual()}", option))
    return found


def _has_own(rig: Path, key: str) -> bool:
    section = load_yaml(rig).data.get("telemetry")
    return isinstance(section, dict) and section.get(key) is not None
