"""Commands that need joints, and rigs that have none. Apart from reading rigs: a cached rig is not read."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cosim.core.errors import InputError


def require_joints(joints: Collection[str], path: Path, command: str) -> None:
    """Raises InputError for a rig of parts only. command: that is for joints, such as `cosim tune gains`."""
    if not joints:
        what = f"{command} is for joints, and this rig has no mechanism, only parts"
        raise InputError(f"{what}; use cosim run, plot or compare", str(path))
