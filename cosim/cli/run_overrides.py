"""Overrides of the rig that options of a run stand for: the sockets of `--telemetry` and `--control`, and the simulated
twins of real joints of `--shadow`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.core.access.binding import control_address, stream_address
from cosim.core.errors import InputError
from cosim.rig.reading.yaml_source import Override, load_yaml

if TYPE_CHECKING:
    from cosim.rig.rig import Rig

# key of the section `telemetry` -> its option, and what returns the address without one
SOCKET_OPTIONS = {"publish": ("--telemetry", stream_address), "control": ("--control", control_address)}

SHADOW_OPTION, SHADOW_KEY = "--shadow", "guard.shadow"


def sockets_of(rig: Path, overrides: Iterable[Override], given: Mapping[str, str | None]) -> list[Override]:
    """given: endpoint by key; empty for the rig's or the usual one, None for what the rig has."""
    texts = [text if isinstance(text, str) else text[0] for text in overrides]
    found: list[Override] = []
    for key, endpoint in given.items():
        option, usual = SOCKET_OPTIONS[key]
        own = any(text.startswith(f"telemetry.{key}=") for text in texts)
        if endpoint or (endpoint == "" and not own and not _has_own(rig, key)):
            found.append((f"telemetry.{key}={endpoint or usual()}", option))
    return found


def _has_own(rig: Path, key: str) -> bool:
    section = load_yaml(rig).data.get("telemetry")
    return isinstance(section, dict) and section.get(key) is not None


def shadow_of(rig: Path, overrides: Iterable[Override]) -> list[Override]:
    """Twins with the usual settings, unless the rig or the overrides have their own."""
    texts = [text if isinstance(text, str) else text[0] for text in overrides]
    section = load_yaml(rig).data.get("guard")
    own = isinstance(section, dict) and section.get("shadow") is not None
    return [] if own or any(text.startswith(SHADOW_KEY) for text in texts) else [(f"{SHADOW_KEY}={{}}", SHADOW_OPTION)]


def check_real(loaded: Rig, option: str = SHADOW_OPTION) -> None:
    """Raises InputError for a rig in which this option has no effect."""
    if not loaded.hardware:
        raise InputError("there are no real motors in this rig; take it out", option)
