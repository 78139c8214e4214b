"""The question before code that came with a recording runs, and `cosim check --untrusted`: a rig of somebody else is
read, and nothing of it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cosim.cli.confirm import Asking, confirm
from cosim.core.errors import InputError, InputErrors
from cosim.core.trust.data_only import CodeRefused, refused_code

if TYPE_CHECKING:
    from cosim.rig.reading.yaml_source import Override

T = TypeVar("T")

CODE = Asking(
    "Type yes to run this code: ",
    "this code would run and there is no terminal to confirm on; pass --trust if you know where it comes from",
    "not confirmed, none of the code was run",
    "--trust",
)

UNTRUSTED_FIX = "check it without --untrusted if you know where it comes from"


def with_trust(recording: Path, trust: bool, work: Callable[[bool], T]) -> T:
    """The result of `work`, which takes whether code of the recording may run: first without it, and if it is needed,
    after the consent of the user. trust: given on the command line. Raises InputError without consent."""
    if not trust:
        try:
            return work(False)
        except InputError as error:
            if not refused_code(error):
                raise
    confirm(_lines(recording), trust, sys.stdin, sys.stdout, CODE)
    return work(True)


def _lines(recording: Path) -> list[str]:
    """What would run; nothing of a recording that this user made here."""
    from cosim.rig.foreign_rig import code_of_recording

    code = code_of_recording(recording)
    first = f"{recording} was not recorded here by you, and has code of its own:"
    return [first, *(f"  {name}: {kind}" for name, kind in code)] if code else []


def describe_untrusted(path: Path, overrides: Iterable[Override]) -> None:
    """Describe the rig as `cosim check` does; of one with code of its own print what would run. Only files in the
    folder of the rig are opened. Raises InputErrors for mistakes in it."""
    from cosim.cli.describe import describe
    from cosim.rig.foreign_rig import reading_data_only
    from cosim.rig.rig import load_rig

    try:
        with reading_data_only(path.absolute().parent, UNTRUSTED_FIX):
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
