"""Named arrays of a file, checked against the shapes that they must have."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from cosim.core.errors import InputError, did_you_mean
from cosim.core.paths import open_file, read_file, unreadable
from cosim.core.types import Array


def read_content(path: Path) -> bytes:
    """Raises InputError for a file that cannot be read."""
    try:
        return read_file(path)
    except OSError as error:
        raise InputError(f"cannot be read: {unreadable(error)}", str(path)) from None


def _npz(path: Path) -> Mapping[str, Array]:
    try:
        with open_file(path) as stream, np.lib.npyio.NpzFile(stream, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        raise InputError("the file is no archive of NumPy; write it with numpy.savez", str(path)) from None


def _json(path: Path) -> Mapping[str, Array]:
    try:
        found = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"the file is no JSON: {error}; correct it", str(path)) from None
    if not isinstance(found, dict):
        raise InputError("the file has no names; write an object with one list per name", str(path))
    try:
        return {name: np.array(value) for name, value in found.items()}
    except ValueError:
        raise InputError("a list has rows of different lengths; fill them up", str(path)) from None


_READERS: dict[str, Callable[[Path], Mapping[str, Array]]] = {".npz": _npz, ".json": _json}


class Arrays:
    """The arrays of an .npz or .json file. Sizes have names: the first array with a size sets it."""

    def __init__(self, path: Path, known: Iterable[str]) -> None:
        """Raises InputError for a file that cannot be read or that has other names than the known ones."""
        self.path, self._known, self.sizes = path, tuple(known), dict[str, int]()
        read_content(path)
        reader = _READERS.get(path.suffix)
        if reader is None:
            raise self.error(f"files '{path.suffix}' are not read; write an .npz or .json file")
        self._arrays = dict(reader(path))
        for name in self._arrays:
            if name not in self._known:
                raise self.error(f"'{name}' has no meaning{did_you_mean(name, self._known)}")

    def error(self, what: str) -> InputError:
        return InputError(what, str(self.path))

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def take(self, name: str, *dims: int | str) -> Array:
        """The array, of finite numbers. Raises InputError where it is missing or has another shape."""
        if name not in self._arrays:
            has = ", ".join(self._arrays) or "nothing"
            raise self.error(f"'{name}' is missing; the file has {has}")
        return self.checked(name, self._arrays[name], *dims)

    def checked(self, name: str, value: Array, *dims: int | str) -> Array:
        if value.dtype.kind not in "iuf":
            raise self.error(f"'{name}' is not of real numbers; write it so")
        fits = value.ndim == len(dims)
        for size, dim in zip(value.shape, dims, strict=False):
            fits = fits and size == (self.sizes.setdefault(dim, size) if isinstance(dim, str) else dim)
        if not fits:
            wanted = ", ".join(f"{d} = {self.sizes[d]}" if d in self.sizes else str(d) for d in dims)
            raise self.error(f"'{name}' has the shape {value.shape}; it must be ({wanted})")
        if not np.isfinite(value).all():
            at = ", ".join(map(str, np.argwhere(~np.isfinite(value))[0]))
            raise self.error(f"'{name}' is not finite at [{at}]; correct it")
        return value.astype(float)

    def take_if_given(self, name: str, *dims: int | str) -> Array | None:
        return self.take(name, *dims) if name in self else None
