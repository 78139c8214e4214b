"""A small disk of its own, for tests of full disks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A folder in `folder` on a disk of 400 KiB."""
    disk = folder / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)]
    if subprocess.run(["mount", *options], capture_output=True).returncode:
        pytest.skip("needs the right to mount a disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
