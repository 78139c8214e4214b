"""The folder of what a run puts on the disk when its memory is used up."""

from __future__ import annotations

from pathlib import Path

from cosim.paths import cache_folder


def run_folder() -> Path:
    """`runs` in the cache folder; not `/tmp`, which may be in memory."""
    return cache_folder() / "runs"
