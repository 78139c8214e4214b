"""Which real joints of a rig were probed, as they are wired now: a file beside the rig."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from cosim.core.paths import read_file
from cosim.rig.sections.drivers import DriverSpec


def record_path(rig: Path) -> Path:
    """arm.yaml -> arm.probe.json"""
    return rig.with_name(f"{rig.stem}.probe.json")


def wiring_text(spec: DriverSpec, joint: str) -> str:
    """How a joint is wired: its family, connection, address, direction, ratio and zero."""
    wired: Any = spec.wiring[joint]
    keys = asdict(wired) if is_dataclass(wired) and not isinstance(wired, type) else {}
    shown = {key: value for key, value in keys.items() if value is not None}
    return (
        f"{spec.plugin.name} on {spec.family.connection_name(spec.plugin.params)}: {json.dumps(shown, sort_keys=True)}"
    )


def unprobed(rig: Path, drivers: Iterable[DriverSpec]) -> list[str]:
    """The real joints whose present wiring has not passed a probe."""
    known = _read(record_path(rig))
    return [
        name
        for spec in drivers
        if not spec.loads
        for name in spec.joints
        if known.get(name, {}).get("wiring") != wiring_text(spec, name) or not known[name].get("passed")
    ]


def add_to_record(rig: Path, results: Mapping[str, Mapping[str, Any]]) -> None:
    """Write results by joint into the record of the rig: wiring, passed, judgement and figures."""
    path = record_path(rig)
    path.write_text(json.dumps(_read(path) | dict(results), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    """Empty where there is none, or none that can be read: its joints count as not probed."""
    try:
        data = json.loads(read_file(path))
    except (OSError, ValueError):
        return {}
    rows = data.items() if isinstance(data, dict) else ()
    return {name: row for name, row in rows if isinstance(row, dict)}
