"""The question before code that came with a recording runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cosim.cli.confirm import Asking, confirm
from cosim.core.errors import InputError
from cosim.core.trust.data_only import refused_code

T = TypeVar("T")

CODE = Asking(
    "Type yes to run this code: ",
    "this code would run and there is no terminal to confirm on; pass --trust if you know where it comes from",
    "not confirmed, none of the code was run",
    "--trust",
)


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
