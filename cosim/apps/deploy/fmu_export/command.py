"""`cosim export fmu`: a rig, or one of its parts, as an FMU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cosim.apps.deploy.fmu_export.export import packed
from cosim.apps.deploy.fmu_export.model_description import UnitOutline
from cosim.apps.deploy.fmu_export.part_unit import unit_of_part
from cosim.apps.deploy.fmu_export.rig_unit import unit_of_rig
from cosim.core.errors import InputError
from cosim.output.console import refuse_inputs
from cosim.output.output_files import check_output, identity, write_file
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import load_rig
from cosim.rig.rig_files import input_files


def export_fmu(
    path: Path,
    overrides: Sequence[Override],
    version: int,
    part: str | None,
    inputs: Sequence[str],
    output: Path | None,
) -> None:
    """part: None for the whole rig; inputs: of this, see `inputs.parametrised`; output: by default named as the rig
    file or the part, in the current folder.

    Raises InputError, CompileError and RunError.
    """
    if part is not None and inputs:
        raise InputError("a part has the inputs that its file declares; leave the option out", "--input")
    file = Path(f"{part or path.stem}.fmu") if output is None else output
    check_output(file, "-o", (".fmu",), {identity(path): "the rig itself"})
    rig = load_rig(path, overrides)
    refuse_inputs(input_files(rig, overrides), file, "-o")
    unit = unit_of_rig(rig, inputs) if part is None else unit_of_part(rig, part, version)
    content = packed(unit, version)
    write_file(file, content, "FMU")
    print(f"wrote    {file}: FMI {version}.0, {len(content) / 1024:,.0f} KiB, {_steps(unit.outline)}")


def _steps(outline: UnitOutline) -> str:
    return "steps of any length" if outline.fixed_step is None else f"steps of {outline.fixed_step:g} s"
