"""Archives and files by name, written below a folder: nothing leaves it, and the size is bounded.

The one place where the program unpacks what came from elsewhere: FMUs, systems of SSP, the files of a rig in a
recording.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath

from cosim.core.errors import InputError, shortened
from cosim.core.paths import NotAFile, check_file

MOST_BYTES = 2_000_000_000  # of all files together
MOST_ENTRIES = 20_000
MOST_BYTES_READ = 100_000_000  # of an entry that is read into memory
EXPORT_AGAIN = "export it again"


def check_names(names: Iterable[str], place: str, fix: str = EXPORT_AGAIN) -> None:
    """Raises InputError for a name that is no path below a folder, for one that occurs twice, for a file with the name
    of a folder of another one, and for too many. A name that ends in `/` is a folder."""
    files: set[PurePosixPath] = set()
    folders: set[PurePosixPath] = set()
    for count, name in enumerate(names, 1):
        if count > MOST_ENTRIES:
            raise InputError(f"holds more than {MOST_ENTRIES:,} files; {fix} without those that are not needed", place)
        path, shown = PurePosixPath(name), shortened(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or PureWindowsPath(name).drive:
            raise InputError(f"holds the path '{shown}' outside of its archive; {fix}", place)
        if not path.parts or "\0" in name:
            raise InputError(f"holds '{shown}', which is no name of a file; {fix}", place)
        if path in files or (path in folders and not name.endswith("/")):
            raise InputError(f"holds '{shown}' twice; {fix}", place)
        (folders if name.endswith("/") else files).add(path)
        folders.update(parent for parent in path.parents if parent.parts)
    if both := sorted(files & folders):
        raise InputError(f"holds '{shortened(str(both[0]))}' twice; {fix}", place)


def unpack_zip(path: Path, folder: Path, shown: str) -> None:
    """Every file of a zip archive. shown: its name in messages.

    Raises InputError for an archive that is damaged, encrypted or too large, and for entries that are no plain files.
    """
    with open_zip(path, shown) as archive:
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                kind = "a link" if stat.S_ISLNK(mode) else "no plain file"
                raise InputError(f"holds '{shortened(entry.filename)}', which is {kind}; {EXPORT_AGAIN}", shown)
        try:
            archive.extractall(folder)
        except OSError as error:
            raise InputError(f"cannot be unpacked to {folder}: {error.strerror}", shown) from None
        except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError) as error:
            raise _damaged(error, shown) from None


def open_zip(path: Path, shown: str, kind: str = "an archive") -> zipfile.ZipFile:
    """A zip archive whose names and size are as they should be. kind: of file that it is. Raises InputError."""
    try:
        check_file(path)
        archive = zipfile.ZipFile(path)
    except NotAFile as error:
        raise InputError(f"cannot be read: {error.strerror}", shown) from None
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"no zip archive ({error}); {kind} is one: export or copy it again", shown) from None
    try:
        entries = archive.infolist()
        check_names((entry.filename for entry in entries), shown)
        size = sum(entry.file_size for entry in entries)
        if size > MOST_BYTES:
            what = f"holds {size / 1e9:.3g} GB, and archives are unpacked up to {MOST_BYTES / 1e9:.3g} GB"
            raise InputError(f"{what}; {EXPORT_AGAIN} without what is not needed", shown)
    except BaseException:
        archive.close()
        raise
    return archive


def read_entry(archive: zipfile.ZipFile, name: str, shown: str) -> bytes:
    """The content of one file of an archive. Raises InputError for one that is damaged or too large."""
    size = archive.getinfo(name).file_size
    if size > MOST_BYTES_READ:
        what = f"{name} has {size / 1e6:,.0f} MB, and is read up to {MOST_BYTES_READ / 1e6:,.0f} MB"
        raise InputError(f"{what}; {EXPORT_AGAIN}", shown)
    try:
        return archive.read(name)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError) as error:
        raise _damaged(error, shown) from None


def unpack_files(files: Mapping[str, bytes | str], folder: Path, place: str) -> None:
    """Files by name. place: where they come from. Raises InputError for names that leave the folder, and too much."""
    fix = "record the run again"
    check_names(files, place, fix)
    contents = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
    if (size := sum(map(len, contents.values()))) > MOST_BYTES:
        what = f"holds {size / 1e9:.3g} GB of files, and they are unpacked up to {MOST_BYTES / 1e9:.3g} GB"
        raise InputError(f"{what}; {fix} without what is not needed", place)
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _damaged(error: Exception, shown: str) -> InputError:
    if "encrypted" in str(error):
        return InputError("is encrypted; export or copy it again without a password", shown)
    return InputError(f"damaged ({error}); export or copy it again", shown)
