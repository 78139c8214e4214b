"""Gains as an overlay, a file for `cosim run --overlay`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from cosim.apps.dashboard.source import Value
from cosim.core.errors import InputError
from cosim.rig.reading.yaml_source import overlay_text

MOST_FILES = 1000


def write_overlay(folder: Path, name: str, rig: str, values: Mapping[str, Value]) -> Path:
    """Write a new file in a folder, none is replaced; its path. name: of the rig; rig: its file; values: by the name
    of the parameter, such as `arm.kp`. Raises InputError where it cannot be written."""
    text = overlay_text({f"controllers.{key}": value for key, value in values.items()}, rig)
    stem = re.sub(r"[^\w.-]+", "_", name) or "rig"
    for number in range(1, MOST_FILES):
        path = folder / (f"{stem}_gains.yaml" if number == 1 else f"{stem}_gains_{number}.yaml")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror}; start the dashboard in another folder", str(path)
            ) from None
        return path
    raise InputError(f"has {MOST_FILES - 1} files of gains of this rig; remove some", str(folder))
