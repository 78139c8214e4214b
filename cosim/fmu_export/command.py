"""`cosim fmu`: a rig as an FMU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cosim.fmu_export.export import fmu_of
from cosim.output.console import refuse_inputs
from cosim.output.output_files import check_output, identity, write_file
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import load_rig
from cosim.rig.rig_files import input_files


def export_fmu(
    path: Path, overrides: Sequence[Override], version: int, inputs: Sequence[str], output: Path | None
) -> None:
    """inputs: see `inputs.with_inputs`; output: by default named as the rig file, in the current folder.

    Raises InputError, CompileError and RunError.
    """
    file = Path(f"{path.stem}.fmu") if output is None else output
    check_output(file, "-o", (".fmu",), {identity(path): "the rig itself"})
    rig = load_rig(path, overrides)
    refuse_inputs(input_files(rig, overrides), file, "-o")
    content = fmu_of(rig, version, inputs)
    write_file(file, content, "FMU")
    print(f"wrote    {file}: FMI {version}.0, {len(content) / 1024:,.0f} KiB, steps of {rig.tick_model.step:g} s")
