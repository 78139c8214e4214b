"""A rig to the file of an FMU: binary, model description and documentation in one archive."""

from __future__ import annotations

import hashlib
import html
import io
import re
import zipfile
from collections.abc import Sequence
from importlib.metadata import version as version_of

from cosim.errors import InputError
from cosim.fmu_export.dependencies import inputs_of_signals
from cosim.fmu_export.inputs import with_inputs
from cosim.fmu_export.linking import compiler_of, linked
from cosim.fmu_export.machine_code import objects_of, observe_routine
from cosim.fmu_export.model_description import UnitOutline, description
from cosim.fmu_export.platforms import Platform, this_platform
from cosim.fmu_export.unit_data import data_text
from cosim.fmu_export.variables import UnitVariable, variables_of
from cosim.rig.build.wired_rig import WiredRig

LICENSE = """\
The program code in this FMU was made with cosim and is under the Apache License, Version 2.0
(https://www.apache.org/licenses/LICENSE-2.0). The model is that of the author of the rig.
"""


def fmu_of(rig: WiredRig, version: int, inputs: Sequence[str] = ()) -> bytes:
    """The file for this major version of FMI; the same bytes for the same rig and compiler. inputs: see
    `inputs.with_inputs`.

    Raises InputError for a rig whose ticks are not machine code, and on a machine that cannot build FMUs.
    """
    check_exportable(rig)
    rig, given = with_inputs(rig, inputs)
    platform = this_platform()
    compiler = compiler_of(platform)
    observe = observe_routine(rig.tick_model)
    variables = variables_of(rig, given, inputs_of_signals(rig.tick_model, observe, given))
    outline, objects = _outline(rig), objects_of(rig.tick_model, observe, platform.target)
    token = _token(version, outline, variables, objects, data_text(rig.tick_model, variables, ""))
    binary = linked(objects, data_text(rig.tick_model, variables, token), version, platform, compiler)
    return _archive(version, outline, variables, token, binary, platform)


def check_exportable(rig: WiredRig) -> None:
    """Raises InputError, at the place in the rig, for one whose ticks are not machine code."""
    fix = "an FMU holds machine code only"
    if rig.hardware:
        raise InputError(f"real motors cannot be in an FMU; {fix}: take the drivers out", rig.place(("drivers",)))
    if rig.run_spec.guard.estop is not None:
        what = f"an emergency stop cannot be in an FMU; {fix}: take it out"
        raise InputError(what, rig.place(("guard", "estop")))
    if rig.interpret:
        raise InputError(f"the rig is interpreted; {fix}: unset COSIM_INTERPRET", "cosim fmu")
    for number, loop in enumerate(rig.tick_model.loops):
        if why := rig.tick_model.untraceable.get(loop.name):
            what = f"controller '{loop.name}' runs in Python ({why}); {fix}: write it with cosim.ops"
            raise InputError(what, rig.place(("controllers", number)))
    if not rig.native:
        raise InputError(f"parts of a tick run in Python; {fix}: take them out", str(rig.spec.path))


def _outline(rig: WiredRig) -> UnitOutline:
    spec, duration = rig.spec, rig.spec.schedule.duration_ns * 1e-9
    about = spec.name, identifier_of(spec.name), spec.description
    return UnitOutline(*about, rig.tick_model.step, duration, f"cosim {version_of('cosim')}")


def identifier_of(name: str) -> str:
    """A name of C, for the binary of a rig."""
    return re.sub(r"^(?=[0-9])|[^A-Za-z0-9_]", "_", name)


def _token(
    version: int, outline: UnitOutline, variables: Sequence[UnitVariable], objects: Sequence[bytes], data: str
) -> str:
    """Of all that the FMU consists of, in the form of a GUID."""
    content = hashlib.sha256(description(version, outline, variables, ""))
    for part in (*objects, data.encode()):
        content.update(part)
    digits = content.hexdigest()
    return f"{{{'-'.join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))}}}"


def _archive(
    version: int,
    outline: UnitOutline,
    variables: Sequence[UnitVariable],
    token: str,
    binary: bytes,
    platform: Platform,
) -> bytes:
    files = {
        "modelDescription.xml": description(version, outline, variables, token),
        f"binaries/{platform.folders[version]}/{outline.identifier}{platform.suffix}": binary,
        "documentation/index.html": _page(outline, variables).encode(),
        "documentation/licenses/license.txt": LICENSE.encode(),
        "resources/": b"",  # expected by some programs
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # without the time
            entry.external_attr = (0o40755 if name.endswith("/") else 0o100644) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _page(outline: UnitOutline, variables: Sequence[UnitVariable]) -> str:
    """The page of the documentation: the step, and a table of the variables."""
    rows = "\n".join(
        f"<tr><td>{html.escape(v.name)}</td><td>{v.causality}</td><td>{html.escape(v.unit)}</td></tr>"
        for v in variables
    )
    step = f"Steps are whole multiples of {outline.step:g} s, the tick of the rig."
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(outline.name)}</title></head><body>
<h1>{html.escape(outline.name)}</h1>
<p>{html.escape(outline.about)}</p>
<p>{step} A stop by the guard ends the simulation with an error and its reason.</p>
<table><tr><th>variable</th><th>causality</th><th>unit</th></tr>
{rows}
</table>
</body></html>
"""
