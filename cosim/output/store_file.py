"""The file of a run whose signals are on disk (`.run`): a header, a row of numbers per tick, and the rest at the end.

    "cosimrun", length of the header (u64), header (JSON), rows of float64: t, then the signals; the rest as a zip file

The rows are appended as they come, so the file of a run that was killed has all rows but its last block, and no rest.
Numbers are little-endian.
"""

from __future__ import annotations

import errno
import os
import struct
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypedDict

import numpy as np

from cosim.core.errors import InputError
from cosim.core.paths import open_file
from cosim.core.trust.plain_data import from_json, of_shape
from cosim.output.output_files import write_error

SUFFIX = ".run"
MAGIC = b"cosimrun"
_START = struct.Struct("<8sQ")
_ALIGNMENT = 4096
WHAT = "signals of the run"


class StoreFile:
    """Writes the file. Raises InputError if it cannot be created, RunError if writing fails: complete rows stay."""

    def __init__(self, path: str | Path, columns: int, header: Mapping[str, Any]) -> None:
        """columns: of the rows, t included. header: JSON-ready."""
        import orjson

        self.path, self._columns = Path(path), columns
        text = orjson.dumps(dict(header) | {"columns": columns})
        text += b" " * (-(_START.size + len(text)) % _ALIGNMENT)
        try:
            self._file = open(path, "w+b", buffering=0)  # noqa: SIM115 (closed by `finish`)
        except OSError as cause:
            raise write_error(path, WHAT, cause) from cause
        self.rows, self._begin = 0, _START.size + len(text)
        self._write(_START.pack(MAGIC, len(text)) + text)

    def append(self, rows: np.ndarray) -> None:
        """Add rows (k, columns)."""
        self._write(np.ascontiguousarray(rows, dtype="<f8").data)
        self.rows += len(rows)

    def _write(self, data: bytes | memoryview) -> None:
        left = memoryview(data).cast("B")
        try:
            while len(left):
                left = left[self._file.write(left) or 0 :]
        except OSError as cause:
            self.close()
            raise write_error(self.path, WHAT, cause) from cause

    def finish(self, rest: Mapping[str, np.ndarray]) -> None:
        """Add the rest, and close the file."""
        if self._file.closed:
            return
        try:
            with open(self.path, "r+b") as file:  # with a buffer, as zip files need
                file.seek(0, os.SEEK_END)
                np.savez(file, allow_pickle=False, **dict(rest))
        except OSError as cause:
            self.close()
            raise write_error(self.path, WHAT, cause) from cause
        self._file.close()

    def close(self) -> None:
        """Close the file behind its last complete row; idempotent."""
        if self._file.closed:
            return
        with suppress(OSError):
            self.rows = (self._file.seek(0, os.SEEK_END) - self._begin) // (8 * self._columns)
            self._file.truncate(self._begin + 8 * self._columns * self.rows)
        self._file.close()

    def table(self) -> np.ndarray:
        """The rows so far (k, columns), read from the disk where they are used."""
        return _mapped(self.path, self._begin, self.rows, self._columns)


class _Header(TypedDict):
    columns: int


class StoredRun(NamedTuple):
    """What is in the file: the rows (k, columns), read from the disk where they are used; rest: empty if the run was
    killed."""

    header: dict[str, Any]
    table: np.ndarray
    rest: dict[str, np.ndarray]


def read_store(path: str | Path) -> StoredRun:
    """Raises InputError for a file that cannot be read or is none of these."""
    try:
        with open_file(path) as file:
            start = file.read(_START.size)
            magic, length = _START.unpack(start) if len(start) == _START.size else (b"", 0)
            if magic != MAGIC:
                raise ValueError
            header = from_json(file.read(length))
            begin, columns = _START.size + length, of_shape(header, _Header)["columns"]
            if columns < 1:
                raise ValueError
            end, rest = _rest(file)
        rows = max(end - begin, 0) // (8 * columns)
        return StoredRun(header, _mapped(Path(path), begin, rows, columns), rest)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or os.strerror(errno.EIO)}", str(path)) from None
    except (ValueError, KeyError):
        raise InputError(f"is no file of a run; give one with the suffix {SUFFIX} of a run", str(path)) from None


def _rest(file: BinaryIO) -> tuple[int, dict[str, np.ndarray]]:
    """(the place where the rest begins, the rest); the end of the file and nothing if the run was killed."""
    try:
        with zipfile.ZipFile(file) as parts:
            begin = min(part.header_offset for part in parts.infolist())
    except (zipfile.BadZipFile, ValueError):
        return file.seek(0, os.SEEK_END), {}
    file.seek(begin)
    with np.load(file) as arrays:
        return begin, {name: arrays[name] for name in arrays.files}


def _mapped(path: Path, begin: int, rows: int, columns: int) -> np.ndarray:
    if not rows:
        return np.empty((0, columns))
    return np.memmap(path, "<f8", mode="r", offset=begin, shape=(rows, columns))
