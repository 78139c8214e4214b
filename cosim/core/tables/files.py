"""The format of a file with a table, by its first bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cosim.core.errors import InputError, SourceLocation, did_you_mean
from cosim.core.paths import open_file, read_file, unreadable
from cosim.core.tables.arrays import read_matlab, read_numpy, read_parquet
from cosim.core.tables.messages import read_messages
from cosim.core.tables.table import FileTable
from cosim.core.tables.text import read_text

# how files begin that are no tables -> what to do
OTHERS = {
    b"\x89HDF\r\n\x1a\n": "is HDF5, as MATLAB writes it by '-v7.3'; save it by '-v7'",
    b"PK\x03\x04": "is an archive or a workbook; export its sheet as CSV",
    b"\xd0\xcf\x11\xe0": "is a workbook; export its sheet as CSV",
    b"SQLite format 3": "is a database, as ROS 2 bags may be; convert it to MCAP by 'ros2 bag convert'",
    b"#ROSBAG V": "is a bag of ROS 1; convert it to MCAP by 'mcap convert'",
    b"\x80\x03": "is a pickle, which could run code; write it as CSV or Parquet",
    b"\x80\x04": "is a pickle, which could run code; write it as CSV or Parquet",
    b"\x80\x05": "is a pickle, which could run code; write it as CSV or Parquet",
    b"\x1f\x8b": "is packed by gzip; unpack it",
    b"(\xb5/\xfd": "is packed by zstd; unpack it",
    b"{": "is JSON; write its numbers as CSV, Parquet or NumPy",
    b"<!": "is a page of HTML; save the table alone, as CSV",
    b"<html": "is a page of HTML; save the table alone, as CSV",
    b"<?xml": "is XML; write its numbers as CSV, Parquet or NumPy",
}
LARGEST_TEXT = 1 << 29  # bytes; reading takes about 20 times as many in memory
HEAD = 16  # bytes, in which a format is recognised


def open_table(path: str | Path, topic: str | None = None, key: str = "") -> FileTable:
    """The table in a file: text (`cosim.core.tables.text`), Parquet, MATLAB, NumPy, or MCAP, recordings of this program
    among them. topic: of MCAP, None where one is to be found; key: of the message about a file that cannot be read.

    Raises InputError with the place of what is wrong.
    """
    path, place = Path(path), SourceLocation(str(path), None, key)
    try:
        with open_file(path) as file:
            head = file.read(HEAD)
        reader = _reader(head, path, topic)
        if reader is None:
            for begin, what in OTHERS.items():
                if head.startswith(begin):
                    raise InputError(what, place)
            if (size := path.stat().st_size) > LARGEST_TEXT:
                raise InputError(f"has {size:,} bytes of text; write it as Parquet, or a part of it", place)
            return read_text(path, read_file(path))
        return reader(path)
    except FileNotFoundError:
        near = sorted(file.name for file in path.parent.glob("*") if file.is_file())
        raise InputError(f"no such file{did_you_mean(path.name, near)}", place) from None
    except OSError as error:
        raise InputError(f"cannot be read: {unreadable(error)}", place) from None


def _reader(head: bytes, path: Path, topic: str | None) -> Callable[[Path], FileTable] | None:
    """None for text, and for other formats."""
    if head.startswith(b"\x89MCAP0\r\n") or (path.suffix == ".mcap" and not head.isascii()):
        return lambda path: read_messages(path, topic)
    if head.startswith(b"PAR1"):
        return read_parquet
    if head.startswith(b"\x93NUMPY") or (head.startswith(b"PK\x03\x04") and path.suffix == ".npz"):
        return read_numpy
    if head.startswith(b"MATLAB 5.0") or (path.suffix == ".mat" and not head.startswith(b"\x89HDF")):
        return read_matlab
    return None
