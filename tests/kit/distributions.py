"""Distributions of other people: a folder on the path with modules and the entry points in their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, entries: Mapping[str, Mapping[str, str]], modules: Mapping[str, str]) -> Path:
    """A distribution `far` in the folder, to be put on `sys.path`. entries: group -> name -> module; modules: name ->
    code."""
    info = folder / "far-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: far\nVersion: 1.0\n")
    groups = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in entries.items())
    (info / "entry_points.txt").write_text("\n".join(groups))
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code)
    return folder
