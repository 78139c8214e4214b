"""The command `cosim drives scan`."""

from __future__ import annotations

from pathlib import Path

from cosim.apps.commissioning.scan import connection_of, drivers_text, report_lines, scan
from cosim.core.errors import RunError
from cosim.output import console
from cosim.output.output_files import check_output


def scan_bus(bus: str | None, port: str | None, family: str | None, output: Path | None) -> None:
    """Print the drives on a connection, and write the section `drivers` of a rig.

    Raises InputError for a connection that cannot be opened or that is in use, RunError where no drive answers.
    """
    key, section = connection_of(bus, port)
    if output is not None:
        check_output(output, "-o", (".yaml", ".yml"))
    name = bus or port
    with console.busy(f"searching {name}"):
        reports = scan(key, section, family)
    for line in report_lines(reports):
        print(line)
    text = drivers_text(reports, key, f"found by cosim drives scan --{key} '{name}'")
    if not text:
        raise RunError(f"no drive answers; check its power, its cable and the bit rate of --{key}", str(name))
    if output is None:
        print(f"\n{text}", end="")
    else:
        output.write_text(text, encoding="utf-8")
        print(f"wrote    {output}")
