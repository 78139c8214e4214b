"""The simulated twins of real joints, as the option `--shadow` of a run adds them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.core.errors import InputError
from cosim.rig.reading.yaml_source import Override, load_yaml

if TYPE_CHECKING:
    from cosim.rig.rig import Rig

OPTION, KEY = "--shadow", "guard.shadow"


def shadow_of(rig: Path, overrides: Iterable[Override]) -> list[Override]:
    """Twins with the usual settings, unless the rig or the overrides have their own."""
    texts = [text if isinstance(text, str) else text[0] for text in overrides]
    section = load_yaml(rig).data.get("guard")
    own = isinstance(section, dict) and section.get("shadow") is not None
    return [] if own or any(text.startswith(KEY) for text in texts) else [(f"{KEY}={{}}", OPTION)]


def check_real(loaded: Rig, option: str = OPTION) -> None:
    """Raises InputError for a rig in which this option has no effect."""
    if not loaded.hardware:
        raise InputError("there are no real motors in this rig; take it out", option)
