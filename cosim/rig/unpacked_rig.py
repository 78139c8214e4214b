"""A rig from its files by name (`cosim.rig.rig_files`), as recordings have them, in a temporary folder."""

from __future__ import annotations

import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from cosim.core.errors import InputError
from cosim.core.trust.unpacking import unpack_files
from cosim.rig.foreign_rig import is_own, reading_data_only
from cosim.rig.reading.input_tracking import modules_of_user
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import Rig, load_rig


def rig_of_files(
    files: Mapping[str, bytes | str],
    name: str,
    overrides: Iterable[Override] = (),
    interpret: bool | None = None,
    trust: bool = False,
    place: str = "rig",
) -> Rig:
    """The rig in the file `name` among `files`, unpacked to a temporary folder that is removed with the rig.

    trust: its code may run, as any rig's, and its paths may lead anywhere; else it is read as data, unless this
    user recorded these files here. place: where they come from. Raises InputError for a name that is not among the
    files or leaves the folder, InputErrors for mistakes in the rig and for code that is not trusted.
    """
    if name not in files:
        raise InputError(f"there is no file '{name}' among the files of the rig; give one of {', '.join(files)}", "rig")
    contents = {each: text.encode() if isinstance(text, str) else text for each, text in files.items()}
    folder = tempfile.TemporaryDirectory(prefix="cosim-rig-")
    try:
        unpack_files(contents, Path(folder.name), place)
        if trust or is_own(contents):
            with _importing_from(folder.name, files):
                rig = load_rig(Path(folder.name) / name, overrides, interpret)
            _check_modules(folder.name, files)
        else:
            with reading_data_only(Path(folder.name)):
                rig = load_rig(Path(folder.name) / name, overrides, interpret)
    except BaseException:
        folder.cleanup()
        raise
    weakref.finalize(rig, folder.cleanup)
    return rig


@contextmanager
def _importing_from(folder: str, files: Iterable[str]) -> Iterator[None]:
    """Modules that plug-ins import beside them are those in the folder."""
    before = list(sys.path)
    sys.path[:0] = sorted({str((Path(folder) / name).parent) for name in files if name.endswith(".py")})
    try:
        yield
    finally:
        sys.path[:] = before


def _check_modules(folder: str, files: Mapping[str, bytes | str]) -> None:
    """Raises InputError where this program has imported another module of the name of one of the files."""
    known = {PurePosixPath(name).stem: content for name, content in files.items() if name.endswith(".py")}
    for module, file in modules_of_user():
        content = known.get(module.rpartition(".")[2])
        if content is None or file.startswith(folder):
            continue
        if Path(file).read_bytes() != (content.encode() if isinstance(content, str) else content):
            what = f"the module '{module}' of this program differs from the run's"
            raise InputError(f"{what}; run it again in a new program", file)
