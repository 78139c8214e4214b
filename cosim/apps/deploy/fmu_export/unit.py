"""What is in an FMU, whatever it is a model of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cosim.apps.deploy.exportable import FileKind
from cosim.apps.deploy.fmu_export.model_description import UnitOutline
from cosim.apps.deploy.fmu_export.variables import UnitVariable

FMU = FileKind("an FMU", "cosim export fmu", "couple the file in the importer")


@dataclass(frozen=True)
class UnitContent:
    """kind: of its C source; code: LLVM IR of the functions, and data: C definitions, that the header of the kind
    declares, but for the token."""

    kind: Literal["rig", "part"]
    outline: UnitOutline
    variables: Sequence[UnitVariable]
    code: str
    data: str
