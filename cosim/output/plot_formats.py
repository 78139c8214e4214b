"""The file formats of plots."""

from __future__ import annotations

from pathlib import Path

from cosim.core.errors import InputError

# suffix -> metadata: no date, so that equal runs give equal files
FORMATS: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def check_format(path: str | Path, option: str = "") -> str:
    """The file format by the suffix of `path`. Raises InputError for an unsupported one; option: where it came from."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        wrong = f"cannot draw a plot as '.{form}'" if form else "no suffix"
        place = f"{option}: {path}" if option else str(path)
        raise InputError(f"{wrong}; use {', '.join(f'.{known}' for known in FORMATS)}", place)
    return form
