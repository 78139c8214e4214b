"""An FMU file and its model description."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from cosim.core.errors import InputError, did_you_mean, shortened
from cosim.core.trust.data_only import FMU, refuse_code
from cosim.core.trust.unpacking import EXPORT_AGAIN, open_zip, read_entry
from cosim.mechanics.multibody.description.xmltree import parse_xml

DESCRIPTION = "modelDescription.xml"
DOCUMENT_TYPE = tuple("<!DOCTYPE".encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be"))
DESCRIPTIONS = {DESCRIPTION, "sources/buildDescription.xml"}
VERSIONS = ("2.0", "3.0")
INSTALL = "install it with `pip install -e '.[fmi]'`"


def fmpy_module() -> Any:
    """The package fmpy. Raises InputError without it."""
    try:
        import fmpy
    except ImportError:
        raise InputError(f"FMUs need the package fmpy; {INSTALL}") from None
    return fmpy


class FmuDescription:
    """An FMU as its file describes it. description: as fmpy reads it; names: of the files in the archive; shown: the
    file in messages, its path by default.

    Raises InputError, with the file as its place, for a file that is no FMU of FMI 2.0 or 3.0.
    """

    def __init__(self, path: Path, shown: str = "") -> None:
        self.path, self.shown = path, shown or str(path)
        refuse_code(path.name, FMU, self.shown)
        self._fmpy = fmpy_module()
        self.names = self._names()
        self.version = self._version()
        self.description = self._read()

    def _error(self, what: str) -> InputError:
        return InputError(what, self.shown)

    def _names(self) -> list[str]:
        """The files in the archive."""
        if not self.path.exists():
            near = sorted(file.name for file in self.path.parent.glob("*.fmu"))
            raise self._error(f"no such file{did_you_mean(self.path.name, near)}")
        if self.path.is_dir():
            raise self._error("is a folder; an FMU is a zip archive: name the file, or zip what is in the folder")
        with self._archive() as archive:
            names = archive.namelist()
        if DESCRIPTION not in names:
            raise self._error(f"has no {DESCRIPTION}; an FMU has it at the top of its archive: export it again")
        return names

    def _archive(self) -> zipfile.ZipFile:
        return open_zip(self.path, self.shown, "an FMU")

    def _text(self, archive: zipfile.ZipFile, name: str) -> bytes:
        text = read_entry(archive, name, self.shown)
        if any(mark in text for mark in DOCUMENT_TYPE):  # its entities may name any file, which readers of XML put in
            raise self._error(f"{name} declares a document type, which FMI does not have; {EXPORT_AGAIN}")
        return text

    def _version(self) -> str:
        """The FMI version, `2.0` or `3.0`."""
        with self._archive() as archive:
            text = self._text(archive, DESCRIPTION)
        root = parse_xml(text, f"{self.shown}/{DESCRIPTION}")
        if root.tag != "fmiModelDescription":
            raise self._error(f"{DESCRIPTION} has the element <{shortened(root.tag)}>, not <fmiModelDescription>")
        version = root.attributes.get("fmiVersion", "")
        if not version.startswith(VERSIONS):
            raise self._error(f"has FMI version '{shortened(version)}'; export it for FMI {' or '.join(VERSIONS)}")
        return version[:3]

    def _descriptions(self) -> io.BytesIO:
        """An archive in memory with the descriptions only: fmpy leaves files open when it fails."""
        data = io.BytesIO()
        with self._archive() as archive, zipfile.ZipFile(data, "w") as copy:
            for name in DESCRIPTIONS & set(self.names):
                copy.writestr(name, self._text(archive, name))
        return data

    def _read(self) -> Any:
        try:
            return self._fmpy.read_model_description(self._descriptions(), validate=False)
        except Exception as error:  # fmpy raises whatever the reading meets
            raise self._error(
                f"{DESCRIPTION} does not follow FMI {self.version}: {_one_reason(error)}; export the FMU again"
            ) from None


def _one_reason(error: Exception) -> str:
    """What fmpy reports, in one line."""
    return shortened(" ".join(str(error).split()).rstrip("."), 200) or type(error).__name__
