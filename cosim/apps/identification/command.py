"""`cosim identify`: numbers of a rig from a recording, or a motion to record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cosim.apps.identification.equation_error import check_identifiable_rig
from cosim.apps.identification.excitation import excite, overlay_of
from cosim.apps.identification.friction_ladder import climb
from cosim.apps.identification.identification import OUTPUT_ERROR, identify, known_information
from cosim.apps.identification.motion_file import motion_file
from cosim.apps.identification.repeated_recordings import check_distinct
from cosim.apps.identification.report import report_page
from cosim.apps.identification.results import Identification
from cosim.apps.identification.servo_command import identify_servo, is_index
from cosim.apps.identification.variables import Variables, choose
from cosim.core.errors import InputError, RunError
from cosim.core.tables.options import SAID_BY_THE_FILE, TableOptions
from cosim.core.types import Array
from cosim.output import console
from cosim.output.output_files import check_output, identity, write_file, write_json
from cosim.rig.reading.yaml_source import Override, overlay_text, overrides_of
from cosim.rig.rig import Rig, load_rig
from cosim.rig.rig_files import input_files

OVERLAY, TABLE = (".yaml", ".yml"), (".csv",)
NARROWER, MOST_NARROWED = 1.5, 8  # times that an interval shrinks, and so many numbers: which are printed
LONGEST_MOTION = 600.0  # s, of a motion to record
LADDER = "ladder"  # of --friction
SUFFIXES = {"--report": (".html", ".htm"), "--json": (".json",)}  # of each option; of others OVERLAY


def identify_rig(
    path: Path,
    recordings: Sequence[str],
    check: Sequence[str],
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
    friction: str | None = None,
    fixed: Sequence[str] = (),
    motors: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Print what recordings determine, and write the overlay, the report and the figures. Raises RunError, after the
    latter are written, for numbers that explain too little; their overlay is written `anyway` only.

    recordings, check: paths, each with what `motion_file` reads."""
    files, checks = ([motion_file(text) for text in texts] for texts in (recordings, check))
    if any(is_index(Path(file.path)) for file in (*files, *checks)):
        if len(files) > 1 or checks:
            raise InputError("an index of short runs has its own runs that check; give it alone", recordings[0])
        others = {
            "--report": report,
            "--cutoff": cutoff,
            "--friction": friction,
            "--fixed": fixed or None,
            "--motor": motors or None,
        }
        for option, given in others.items():
            if given is not None:
                raise InputError("is for one recording, not for an index of short runs; leave it out", option)
        identify_servo(path, Path(files[0].path), overrides, wanted, method, output, json)
        return
    check_distinct([file.path for file in files], [file.path for file in checks])
    if not files and output is not None:
        raise InputError("no numbers are found without a recording; give one before --check, or leave it out", "-o")
    targets = {"-o": output, "--report": report, "--json": None if json == "-" else json}
    _check_outputs(path, [file.path for file in (*files, *checks)], targets)
    with console.busy(f"identifying {path.stem}"):
        rig = load_rig(path, overrides)
        rig.require_joints("cosim identify")
        console.check_files(input_files(rig, overrides), targets)

        def find(rig: Rig, numbers: Sequence[str]) -> Identification:
            return identify(rig, files, numbers, cutoff, training, method, table, checks, fixed, motors)

        if friction == LADDER and not files:
            raise InputError("no law is found without a recording; give one before --check", "--friction")
        if friction == LADDER:
            if method == OUTPUT_ERROR:
                raise InputError("tries laws by the equation error; leave --method out", f"--friction {LADDER}")
            check_identifiable_rig(rig, otherwise="leave --friction out", fixed=fixed)
            found = climb(rig, lambda keys: load_rig(path, [*overrides, *overrides_of(keys)]), find, wanted)
        else:
            found = find(rig, wanted)
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
        raise RunError(found.failure, found.motions[-1 if checks else 0].path)


def _narrowed(variables: Variables, narrower: Array) -> list[tuple[str, float]]:
    """The numbers of which a motion shows the most beyond what is known, with how much."""
    of_blocks = zip(variables.titles, variables.split(narrower), strict=True)
    found = sorted(((title, float(times.max())) for title, times in of_blocks), key=lambda each: -each[1])
    return [each for each in found if each[1] >= NARROWER][:MOST_NARROWED]


def _check_outputs(rig: Path, recordings: Sequence[str | Path], targets: Mapping[str, str | None]) -> None:
    """Raises InputError for files that cannot be written, or that would overwrite the inputs or each other."""
    taken = {identity(rig): "the rig itself"} | {identity(Path(path)): "the recording" for path in recordings}
    for option, given in targets.items():
        if given is not None:
            suffixes = TABLE if not recordings and option == "-o" else SUFFIXES.get(option, OVERLAY)
            check_output(given, option, suffixes, taken)
            taken[identity(Path(given))] = f"the file of {option}"


def excite_rig(
    path: Path,
    overrides: Sequence[Override],
    wanted: Sequence[str],
    duration: float,
    output: str | None,
    seed: int = 0,
    recordings: Sequence[str] = (),
    table_options: TableOptions = SAID_BY_THE_FILE,
) -> None:
    """Design a motion, write it as a table, and the overlay that makes the rig follow it. seed: of the motion; another
    one gives another motion; recordings: what they show of the numbers, the motion need not."""
    if seed < 0:
        raise InputError(f"is {seed}; give 0, 1, 2, …", "--seed")
    if not duration <= LONGEST_MOTION:
        raise InputError(f"is {duration:g} s; a motion lasts {LONGEST_MOTION:g} s at most", "--duration")
    table = Path(output or f"{path.stem}_motion.csv")
    overlay = table.with_suffix(".yaml")
    targets = {"-o": str(table), "the overlay": str(overlay)}
    files = [motion_file(text) for text in recordings]
    _check_outputs(path, [], targets)
    with console.busy(f"designing a motion of {path.stem}"):
        rig, known, warned = load_rig(path, overrides), None, list[str]()
        rig.require_joints("cosim identify")
        console.check_files(input_files(rig, overrides), targets)
        if files:
            check_identifiable_rig(rig, "design its motion yourself")
            found = identify(rig, files, wanted, table=table_options)
            if found.failure:
                warned.append(f"{found.failure}; so the motion is designed with the numbers of the rig")
            else:
                rig = load_rig(path, [*overrides, *overrides_of(found.overlay())])
            known = known_information(found, rig, files, wanted)
        variables = choose(rig, wanted)
        motion = excite(rig, variables, duration, seed, known)
        keys = overlay_of(rig, table, duration)
    made = f"# motion of {rig.run_spec.name}, made by cosim identify --excite --duration {duration:g} --seed {seed}\n"
    write_file(table, (made + motion.table()).encode(), "motion")
    write_file(overlay, overlay_text(keys, str(path)).encode(), "overlay")
    for warning in warned:
        print(f"warning   {warning}")
    best, first = motion.information
    print(f"{rig.run_spec.name}: {duration:g} s, log det {best:.1f}, {best - first:.1f} above a random motion's")
    if known:
        for name, times in _narrowed(variables, motion.narrower):
            print(f"narrower  {name}: its interval becomes {times:.2g} times smaller")
    print(f"wrote     motion {table}")
    print(f"wrote     overlay {overlay}")
    print(f"record it with: cosim run {path} --overlay {overlay} --record F.mcap")
