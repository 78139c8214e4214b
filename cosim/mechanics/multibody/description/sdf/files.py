"""SDF files and the files that they include: where they may be, and their versions.

A file names others as `model://NAME/…`, `package://NAME/…` or relative to its own folder. Only those in the folder of
the first file, in a model beside it, or in a folder that the user named are opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cosim.core.errors import InputError, InputErrors, SourceLocation
from cosim.core.paths import PACKAGE, find_package, irregular, read_file
from cosim.mechanics.multibody.description.sdf.values import SdfValues, children
from cosim.mechanics.multibody.description.xmltree import BLANK, XmlElement, begins_blank, parse_xml

MODEL, MANIFEST, DEFAULT = "model://", "model.config", "model.sdf"
RESOURCES = ("GZ_SIM_RESOURCE_PATH", "SDF_PATH", "GAZEBO_MODEL_PATH")  # where Gazebo searches models
OLDEST, NEWEST = (1, 4), (1, 12)
MOST_INCLUDES, MOST_BYTES = 1000, 3_000_000
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?")


@dataclass
class SdfFiles:
    """The files of a model. versions: of each file; folders: that the user named for models and packages."""

    values: SdfValues
    first: Path
    folders: Sequence[Path] = ()
    versions: dict[str, tuple[int, int]] = field(default_factory=dict)
    roots: dict[str, XmlElement] = field(default_factory=dict)
    includes: int = 0
    incomplete: bool = False  # a model was not found, so that names in it are not known

    def load(self, path: Path, text: bytes | None = None) -> XmlElement:
        """The element <sdf> of a file. Raises InputErrors."""
        file = str(path)
        if file in self.roots:
            return self.roots[file]
        text = read_file(path) if text is None else text
        root = parse_xml(text, file)
        if begins_blank(text):
            self.values.diagnostics.note(BLANK, SourceLocation(file, 1))
        if root.tag != "sdf":
            raise InputErrors([InputError(f"expected the element <sdf>, got <{root.tag}>", root.place)])
        self.versions[file] = self._version(root)
        self.values.own(root)
        self.roots[file] = root
        return root

    def version(self, element: XmlElement) -> tuple[int, int]:
        return self.versions[element.file]

    def _version(self, root: XmlElement) -> tuple[int, int]:
        written = root.attributes.get("version", "").strip()
        match = _VERSION.fullmatch(written)
        oldest, newest = (".".join(map(str, version)) for version in (OLDEST, NEWEST))
        found = (int(match[1]), int(match[2])) if match else (0, 0)
        if found < OLDEST:
            what = f"expected a version from {oldest} to {newest}, got '{written}'"
            fix = "convert the file with 'gz sdf -p'" if match else "write the version of the format"
            raise InputErrors([InputError(f"<sdf>: {what}; {fix}", root.place)])
        if found > NEWEST:
            self.values.warn(root, f"version {written} is newer than {newest}, as which it is read; check what is new")
        return found

    # --- included files ---

    def included(self, include: XmlElement) -> XmlElement | None:
        """The model that an <include> names; None after an error, which is recorded."""
        found = self._included(include)
        self.incomplete |= found is None
        return found

    def _included(self, include: XmlElement) -> XmlElement | None:
        self.includes += 1
        uri = self.values.text(include, "uri")
        if not uri:
            return None
        if self.includes > MOST_INCLUDES:
            raise InputErrors(
                [InputError(f"more than {MOST_INCLUDES} models are included; include fewer", include.place)]
            )
        try:
            path = self._model_file(self.located(uri, Path(include.file)), uri)
            root = self.load(path)
        except InputErrors:
            raise
        except InputError as error:
            self.values.error(include, f"'{uri}': {error.what}" if error.place else error.what)
            return None
        except OSError as error:
            self.values.error(include, f"'{uri}' cannot be read: {error.strerror}")
            return None
        models = children(root, "model")
        if len(models) != 1:
            self.values.error(include, f"'{uri}' has {len(models)} models; an included file has one")
        return models[0] if len(models) == 1 else None

    def located(self, uri: str, file: Path) -> Path:
        """The file or folder of a URI, which may be opened. Raises InputError."""
        if uri.startswith(MODEL):
            name, _, rest = uri.removeprefix(MODEL).partition("/")
            found = self._model_folder(name, file) / rest
            return self._inside(found, uri, [self._model_folder(name, file)])
        if uri.startswith(PACKAGE):
            name, _, rest = uri.removeprefix(PACKAGE).partition("/")
            folder = find_package(name, self.folders, self.first.parent)
            return self._inside(folder / rest, uri, [folder])
        if "://" in uri:
            kind = uri.partition("://")[0]
            raise InputError(f"'{uri}' is not a file of this machine ({kind}); download it and name the file")
        return self._inside(file.parent / uri, uri, [file.parent, self.first.parent, *self.folders])

    def _model_folder(self, name: str, file: Path) -> Path:
        if name in ("", ".", "..") or os.sep in name:
            raise InputError(f"'{MODEL}{name}' names no model; write {MODEL}NAME")
        shared = [Path(p) for key in RESOURCES for p in os.environ.get(key, "").split(os.pathsep) if p]
        around = [file.parent, file.parent.parent, self.first.parent, self.first.parent.parent]
        for folder in (*self.folders, *around, *shared):
            if folder.name == name and (folder / MANIFEST).is_file():
                return folder
            if (folder / name).is_dir():
                return folder / name
        where = "in mechanism.packages, beside the file or in GZ_SIM_RESOURCE_PATH"
        raise InputError(
            f"there is no model '{name}' {where}; add the folder it is in to mechanism.packages or --packages"
        )

    def _inside(self, path: Path, uri: str, folders: Sequence[Path]) -> Path:
        """The path, where it is in one of the folders. Raises InputError."""
        real = os.path.realpath(path)
        if any(os.path.commonpath([real, os.path.realpath(folder)]) == os.path.realpath(folder) for folder in folders):
            return path
        what = f"'{uri}' is outside of the folder of the file, where nothing is opened"
        raise InputError(f"{what}; add its folder to mechanism.packages or --packages if you know it")

    def _model_file(self, path: Path, uri: str) -> Path:
        """The SDF file of a path, which may be a folder of a model. Raises InputError, OSError."""
        if path.is_dir():
            path = self._inside(path / self._from_manifest(path), uri, [path])
        if not path.exists():
            raise InputError(f"there is no file '{path}' for '{uri}'; check the path")
        if kind := irregular(path):
            raise InputError(f"'{uri}' is {kind}; name an SDF file")
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"'{uri}' has more than {MOST_BYTES / 1e6:.3g} MB; take out what is no link and no joint")
        return path

    def _from_manifest(self, folder: Path) -> str:
        """The newest file that a manifest names, of a version that is read."""
        if not (folder / MANIFEST).is_file():
            return DEFAULT
        found = []
        for element in children(parse_xml(read_file(folder / MANIFEST), str(folder / MANIFEST)), "sdf"):
            match = _VERSION.fullmatch(element.attributes.get("version", "").strip())
            version = (int(match[1]), int(match[2])) if match else OLDEST
            if version <= NEWEST and element.text:
                found.append((version, element.text))
        return max(found, default=(OLDEST, DEFAULT))[1]
