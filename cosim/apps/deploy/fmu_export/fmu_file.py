"""The file of an FMU: binary, model description and documentation in one archive."""

from __future__ import annotations

import hashlib
import html
import io
import zipfile
from collections.abc import Sequence

from cosim.apps.deploy.c_functions import objects_of
from cosim.apps.deploy.fmu_export.linking import Platform, compiler_of, linked, this_platform
from cosim.apps.deploy.fmu_export.model_description import UnitOutline, description
from cosim.apps.deploy.fmu_export.part_unit import unit_of_part
from cosim.apps.deploy.fmu_export.rig_unit import unit_of_rig
from cosim.apps.deploy.fmu_export.unit import UnitContent, text
from cosim.apps.deploy.fmu_export.variables import UnitVariable
from cosim.rig.wiring.wired_rig import WiredRig

LICENSE = """\
The program code in this FMU was made with cosim and is under the Apache License, Version 2.0
(https://www.apache.org/licenses/LICENSE-2.0). The model belongs to the author of the rig.
"""


def fmu_of(rig: WiredRig, version: int, inputs: Sequence[str] = ()) -> bytes:
    """The file for this major version of FMI; the same bytes for the same rig and compiler. inputs: see
    `inputs.parametrised`.

    Raises InputError for a rig whose ticks are not machine code, and on a machine that cannot build FMUs.
    """
    return packed(unit_of_rig(rig, inputs), version)


def fmu_of_part(rig: WiredRig, name: str, version: int) -> bytes:
    """As `fmu_of`, of one part of the rig."""
    return packed(unit_of_part(rig, name, version), version)


def packed(unit: UnitContent, version: int) -> bytes:
    """The file of a unit. Raises InputError on a machine that cannot build FMUs, RunError for a compiler that fails."""
    platform = this_platform()
    compiler = compiler_of(platform)
    objects = objects_of(unit.code, platform.target)
    token = _token(unit, version, objects)
    data = f"{unit.data}const char *const unit_token = {text(token)};\n"
    return _archive(unit, version, token, linked(objects, data, unit.kind, version, platform, compiler), platform)


def _token(unit: UnitContent, version: int, objects: Sequence[bytes]) -> str:
    """Of all that the FMU consists of, in the form of a GUID."""
    content = hashlib.sha256(description(version, unit.outline, unit.variables, ""))
    for part in (*objects, unit.data.encode()):
        content.update(part)
    digits = content.hexdigest()
    return f"{{{'-'.join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))}}}"


def _archive(unit: UnitContent, version: int, token: str, binary: bytes, platform: Platform) -> bytes:
    outline, variables = unit.outline, unit.variables
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
        f"<tr><td>{html.escape(v.name)}</td><td>{v.causality}</td><td>{html.escape(v.unit)}</td>"
        f"<td>{html.escape(v.about)}</td></tr>"
        for v in variables
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(outline.name)}</title></head><body>
<h1>{html.escape(outline.name)}</h1>
<p>{html.escape(outline.about)}</p>
<p>{html.escape(outline.steps)}</p>
<table><tr><th>variable</th><th>causality</th><th>unit</th><th>meaning</th></tr>
{rows}
</table>
</body></html>
"""
