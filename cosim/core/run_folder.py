"""The folder of what a run puts on the disk when its memory is used up."""

from __future__ import annotations

from pathlib import Path

from cosim.core.trust.private_cache import code_folder


def run_folder() -> Path:
    """`runs` in the cache folder where that is private; not `/tmp`, which may be in memory."""
    return code_folder() / "runs"
