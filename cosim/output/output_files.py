"""Files that a command writes: whole or not at all, with one clear error, and never in place of another kind of file.

A link is followed, a device or a FIFO is written into. A regular file is written beside its place, and takes it when it
is whole: what was there stays if the writing fails.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from cosim.core.errors import CosimError, InputError, RunError

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
RECORDING = (".mcap",)
PLACE = "name a file in a folder that exists and that you may write to"
NOTHING: Mapping[object, str] = MappingProxyType({})

# suffix -> metadata: no date, so that equal runs give equal files
FORMATS: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def check_output(
    given: str | Path,
    option: str,
    suffixes: Sequence[str],
    taken: Mapping[object, str] = NOTHING,
    regular: bool = False,
) -> None:
    """Refuse an output that cannot be written, that is of another kind, or that would replace something else.

    given: the name as typed, of the option; suffixes: of files of this kind; taken: identity of a file (`identity`) ->
    what it is; regular: whether it must be a regular file. Nothing is changed. Raises InputError.
    """

    def refuse(what: str) -> InputError:
        return InputError(f"{given}: {what}", option)

    if str(given) in ("", "-"):
        raise InputError(f"'{given}' is no file name; name a file", option)
    path = Path(given)
    if identity(path) in taken:
        raise refuse(f"is {taken[identity(path)]}; choose another file")
    if not path.parent.is_dir():
        raise refuse(f"there is no folder '{path.parent}'; create it or choose another")
    if path.is_dir():
        raise refuse("is a folder; name a file in it")
    if path.exists() and not path.is_file():
        if regular or not os.access(path, os.W_OK):
            raise refuse(
                "is no regular file; choose another file" if regular else "cannot be written; choose another file"
            )
        return  # a device or FIFO
    check_suffix(path, suffixes, option)
    new = not path.exists()
    try:
        with path.open("ab"):
            pass
        if new:
            Path(os.path.realpath(path)).unlink()
    except OSError as error:
        raise refuse(f"cannot be written: {error.strerror}; choose another file") from None


def check_suffix(path: Path, suffixes: Sequence[str], option: str) -> None:
    """Raises InputError where the name, or the name of the file it links to, has none of these suffixes."""
    for name in (path, Path(os.path.realpath(path))):
        if name.suffix.lower() not in suffixes:
            where = f"{path}: " if name == path or name.name == path.name else f"{path}: links to {name}: "
            raise InputError(
                f"{where}the file must have the suffix {' or '.join(suffixes)}; choose another name", option
            )


def identity(path: Path) -> object:
    """What two names of one file share, links included."""
    try:
        status = path.stat()
        return status.st_dev, status.st_ino
    except OSError:
        return os.path.realpath(path)  # also of links that lead to each other


def write_file(path: str | Path, content: bytes, what: str) -> None:
    """Write a file, of which no part is left if it fails. what: it is, in the message.

    Raises RunError for a full disk, InputError for a path that cannot be written.
    """
    with writing(path, what) as file:
        file.write(content)


def write_json(path: str | Path, data: object, what: str) -> bool:
    """Write data as JSON to a file, or to standard output where the path is `-`; whether it was a file. See
    `write_file`."""
    import orjson

    text = orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if str(path) == "-":
        print(text.decode(), end="")
        return False
    write_file(path, text, what)
    return True


@contextmanager
def writing(path: str | Path, what: str) -> Iterator[BinaryIO]:
    """The open file, for what is written part by part; see `write_file`."""
    path = Path(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # a device or FIFO
            with open(path, "wb") as file:
                yield file
            return
        with _replacing(Path(os.path.realpath(path))) as file:
            yield file
    except OSError as cause:
        raise write_error(path, what, cause) from cause


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A file beside the target, which takes its place, with its permissions, when it is whole."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    part = target.with_name(f".{target.name[:60]}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        with open(part, "xb") as file:
            yield file
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_error(path: str | Path, what: str, cause: OSError, fix: str = PLACE) -> CosimError:
    """Why the file `what` cannot be written, with the fix: of a full disk, or of another cause."""
    kind = InputError
    if cause.errno in FULL_DISK:
        kind, fix = RunError, "free space on the disk and run again"
    return kind(f"cannot write the {what}: {cause.strerror}; {fix}", str(path))


def check_format(path: str | Path, option: str = "") -> str:
    """The file format by the suffix of `path`. Raises InputError for an unsupported one; option: where it came from."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        wrong = f"cannot draw a plot as '.{form}'" if form else "no suffix"
        place = f"{option}: {path}" if option else str(path)
        raise InputError(f"{wrong}; use {', '.join(f'.{known}' for known in FORMATS)}", place)
    return form
