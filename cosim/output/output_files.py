"""Files that a command writes: whole or not at all, with one clear error."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cosim.errors import CosimError, InputError, RunError

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_file(path: str | Path, content: bytes, what: str) -> None:
    """Write a file, of which no part is left if it fails. what: it is, in the message.

    Raises RunError for a full disk, InputError for a path that cannot be written.
    """
    with writing(path, what) as file:
        file.write(content)


@contextmanager
def writing(path: str | Path, what: str) -> Iterator[BinaryIO]:
    """The open file, for what is written part by part; see `write_file`."""
    path = Path(path)
    try:
        with open(path, "wb") as file:
            yield file
    except OSError as cause:
        with suppress(OSError):
            if path.is_file():
                path.unlink()
        raise write_error(path, what, cause) from cause


def write_error(path: str | Path, what: str, cause: OSError) -> CosimError:
    """Why the file `what` cannot be written, with the fix."""
    if cause.errno in FULL_DISK:
        kind, fix = RunError, "free space on the disk and run again"
    else:
        kind, fix = InputError, "name a file in a folder that exists and that you may write to"
    return kind(f"cannot write the {what}: {cause.strerror}; {fix}", str(path))
