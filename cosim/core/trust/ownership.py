"""Whose a file or a folder is, and whether others can open it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

PRIVATE = 0o700  # mode of a folder of the user alone
OTHERS = 0o077  # what of a mode is for the group and all others


def is_of_user(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid()


def is_open_to_others(status: os.stat_result) -> bool:
    return bool(status.st_mode & OTHERS)


def is_private(folder: Path) -> bool:
    """Whether it is a folder, no link, of this user alone."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and is_of_user(status) and not is_open_to_others(status)
