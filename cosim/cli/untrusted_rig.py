"""`cosim check --untrusted`: a rig of somebody else is read, and nothing of it runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.cli.describe import describe
from cosim.core.errors import InputError, InputErrors
from cosim.core.trust.data_only import CodeRefused, refused_code
from cosim.rig.foreign_rig import reading_data_only
from cosim.rig.rig import load_rig

if TYPE_CHECKING:
    from cosim.rig.reading.yaml_source import Override

FIX = "check it without --untrusted if you know where it comes from"


def describe_untrusted(path: Path, overrides: Iterable[Override]) -> None:
    """Describe the rig as `cosim check` does; of one with code of its own print what would run. Only files in the
    folder of the rig are opened. Raises InputErrors for mistakes in it."""
    try:
        with reading_data_only(path.absolute().parent, FIX):
            describe(load_rig(path, overrides))
    except InputError as error:
        if not (code := refused_code(error)):
            raise
        print(f"{path}: nothing of it was run")
        for each in code:
            print(f"  would run: {each.place}: '{each.name}', {each.kind}")
        print("  not checked: what depends on this")
        errors = error.errors if isinstance(error, InputErrors) else ()
        if mistakes := [each for each in errors if not isinstance(each, CodeRefused)]:
            raise InputErrors(mistakes) from None
