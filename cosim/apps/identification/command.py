"""`cosim identify`: numbers of a rig from a recording, or a motion to record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cosim.apps.identification.excitation import excite, overlay_of
from cosim.apps.identification.identification import identify
from cosim.apps.identification.report import report_page
from cosim.apps.identification.variables import choose
from cosim.core.errors import RunError
from cosim.core.tables.options import SAID_BY_THE_FILE, TableOptions
from cosim.output import console
from cosim.output.output_files import check_output, identity, write_file, write_json
from cosim.rig.reading.yaml_source import Override, overlay_text
from cosim.rig.rig import load_rig
from cosim.rig.rig_files import input_files

OVERLAY, TABLE = (".yaml", ".yml"), (".csv",)
SUFFIXES = {"--report": (".html", ".htm"), "--json": (".json",)}  # of each option; of others OVERLAY


def identify_rig(
    path: Path,
    recording: Path,
    overrides: Sequence[Override],
    wanted: Sequence[str],
    cutoff: float | None,
    training: float,
    output: str | None,
    report: str | None,
    json: str | None,
    method: str | None = None,
    anyway: bool = False,
    table: TableOptions = SAID_BY_THE_FILE,
) -> None:
    """Print what a recording determines, and write the overlay, the report and the figures. Raises RunError, after the
    latter are written, for numbers that explain too little; their overlay is written `anyway` only."""
    targets = {"-o": output, "--report": report, "--json": None if json == "-" else json}
    _check_outputs(path, recording, targets)
    with console.busy(f"identifying {path.stem}"):
        rig = load_rig(path, overrides)
        rig.require_joints("cosim identify")
        console.check_files(input_files(rig, overrides), targets)
        found = identify(rig, recording, wanted, cutoff, training, method, table)
    if json != "-":
        print(*found.lines(), sep="\n")
    if found.failure and not anyway:
        output = None
    written = [("overlay", output, lambda: overlay_text(found.overlay(), str(path)).encode())]
    written += [("report", report, lambda: report_page(found).content())]
    for what, target, content in written:
        if target:
            write_file(target, content(), what)
            if json != "-":
                print(f"wrote     {what} {target}")
    if json and write_json(json, found.as_json(), "figures"):
        print(f"wrote     figures {json}")
    if found.failure:
        raise RunError(found.failure, str(recording))


def _check_outputs(rig: Path, recording: Path | None, targets: Mapping[str, str | None]) -> None:
    """Raises InputError for files that cannot be written, or that would overwrite the inputs or each other."""
    taken = {identity(rig): "the rig itself"} | ({identity(recording): "the recording"} if recording else {})
    for option, given in targets.items():
        if given is not None:
            suffixes = TABLE if recording is None and option == "-o" else SUFFIXES.get(option, OVERLAY)
            check_output(given, option, suffixes, taken)
            taken[identity(Path(given))] = f"the file of {option}"


def excite_rig(
    path: Path, overrides: Sequence[Override], wanted: Sequence[str], duration: float, output: str | None
) -> None:
    """Design a motion, write it as a table, and the overlay that makes the rig follow it."""
    table = Path(output or f"{path.stem}_motion.csv")
    overlay = table.with_suffix(".yaml")
    targets = {"-o": str(table), "the overlay": str(overlay)}
    _check_outputs(path, None, targets)
    with console.busy(f"designing a motion of {path.stem}"):
        rig = load_rig(path, overrides)
        rig.require_joints("cosim identify")
        console.check_files(input_files(rig, overrides), targets)
        motion = excite(rig, choose(rig, wanted), duration)
        keys = overlay_of(rig, table, duration)
    write_file(table, motion.table().encode(), "motion")
    write_file(overlay, overlay_text(keys, str(path)).encode(), "overlay")
    best, first = motion.information
    print(f"{rig.run_spec.name}: {duration:g} s, log det {best:.1f}, {best - first:.1f} above a random motion's")
    print(f"wrote     motion {table}")
    print(f"wrote     overlay {overlay}")
    print(f"record it with: cosim run {path} --overlay {overlay} --record F.mcap")
