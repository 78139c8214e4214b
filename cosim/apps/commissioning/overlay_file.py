"""The overlay that commissioning writes: what was found, for `cosim run RIG --overlay F.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cosim.output.output_files import check_output, identity
from cosim.rig.reading.yaml_source import load_yaml, overlay_text
from cosim.rig.sections.drivers import DriverSpec


def overlay_path(rig: Path, given: Path | None) -> Path:
    """The file that is written: as given, or RIG.commissioning.yaml beside the rig. Raises InputError."""
    path = rig.with_name(f"{rig.stem}.commissioning.yaml") if given is None else given
    check_output(path, "-o", (".yaml", ".yml"), {identity(rig): "the rig itself"})
    return path


def wiring_key(spec: DriverSpec, joint: str, key: str) -> str:
    """The path of a key of a joint's wiring in the rig."""
    return f"drivers.{spec.name}.joints.{joint}.{key}"


def write_overlay(path: Path, rig: Path, values: Mapping[str, Any]) -> None:
    """Add values to an overlay, or replace them in it. Raises InputError for a file that is no overlay."""
    known = dict(load_yaml(path).data) if path.exists() and path.stat().st_size else {}
    path.write_text(overlay_text({**known, **values}, str(rig)), encoding="utf-8")
