"""The folder for sockets and keys that this user alone can open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cosim.core.errors import InputError
from cosim.core.trust.private_cache import PRIVATE, is_private

NAME = "cosim"
FIX = "remove it, or set XDG_RUNTIME_DIR to a folder of yours with the mode 700"


def private_folder() -> Path:
    """In the folder that the system keeps for the user's sockets, else in /tmp; made where it does not exist.

    Raises InputError where it is a link, belongs to somebody else, or others can open it.
    """
    user = os.geteuid()
    folder = next((parent / NAME for parent in _parents(user) if is_private(parent)), Path(f"/tmp/{NAME}-{user}"))
    try:
        folder.mkdir(mode=PRIVATE, exist_ok=True)
    except OSError as cause:
        raise InputError(f"the folder for sockets cannot be made: {cause.strerror}; {FIX}", str(folder)) from cause
    if not is_private(folder):
        raise InputError(f"the folder for sockets is not of this user alone; {FIX}", str(folder))
    return folder


def _parents(user: int) -> Iterator[Path]:
    """With sudo the variable may belong to another user."""
    if given := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(given)
    yield Path(f"/run/user/{user}")
