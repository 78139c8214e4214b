"""`cosim identify` with an index of short runs of a servo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cosim.apps.identification.servo_fit import OPTIONAL, ServoFit, ServoStage, fit_servo, open_runs
from cosim.apps.identification.servo_runs import FILE, read_index
from cosim.core.errors import InputError
from cosim.core.paths import read_file
from cosim.output import console
from cosim.output.output_files import check_output, identity, write_file, write_json
from cosim.rig.file_keys import file_keys
from cosim.rig.reading.yaml_source import Override, overlay_text
from cosim.rig.rig import load_rig

OF_EVERY_FIT = ("inertia", "friction", "delay")  # words of --fit that change nothing here
METHOD = "output-error"


def is_index(path: Path) -> bool:
    """Whether it is a table in CSV with a column `file`."""
    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    first = read_file(path).partition(b"\n")[0].decode("utf-8-sig", "replace")
    return FILE in [name.strip() for name in first.split(",")]


def identify_servo(
    path: Path,
    index: Path,
    overrides: Sequence[Override],
    wanted: Sequence[str],
    method: str | None,
    output: str | None,
    json: str | None,
) -> None:
    """Print what the runs of an index determine of a servo, and write the overlay and the figures."""
    if method not in (None, METHOD):
        raise InputError(f"runs of a servo are simulated; use {METHOD} or leave it out", "--method")
    for word in wanted:
        if word not in (*OPTIONAL, *OF_EVERY_FIT):
            what = f"'{word}' is not looked for in runs of a servo, but all of its friction is"
            raise InputError(f"{what}; add {' or '.join(OPTIONAL)} or leave it out", "--fit")
    taken = {identity(path): "the rig itself", identity(index): "the index"}
    for option, given, suffixes in (("-o", output, (".yaml", ".yml")), ("--json", json, (".json",))):
        if given not in (None, "-"):
            check_output(given, option, suffixes, taken)
            taken[identity(Path(given))] = f"the file of {option}"
    with console.busy(f"identifying {path.stem}"):
        optional = [word for word in wanted if word in OPTIONAL]
        found = fit_servo(open_runs(path, read_index(index), optional, overrides), optional)
    if json != "-":
        print(*found.lines(), sep="\n")
    if output:
        numbers = {name: float(value) for name, value in found.taken.numbers.rig_numbers(found.joint).items()}
        keys = file_keys(load_rig(path, overrides), numbers)
        write_file(output, overlay_text(keys, str(path)).encode(), "overlay")
        if json != "-":
            print(f"wrote     overlay {output}")
    if json and write_json(json, as_json(found), "figures"):
        print(f"wrote     figures {json}")


def as_json(found: ServoFit) -> dict[str, object]:
    """Of all laws; `taken`: the one to take, with all runs."""
    laws = [_as_json(stage, found.joint) for stage in found.stages]
    return {
        "joint": found.joint,
        "candidates": found.candidates,
        "taken": _as_json(found.taken, found.joint),
        "products": {name: value for name, (value, _) in found.products.items()},
        "laws": laws,
    }


def _as_json(stage: ServoStage, joint: str) -> dict[str, object]:
    return {
        "law": stage.law,
        "error": stage.fitted_error,
        "error_of_runs_kept_out": stage.other_error if stage.kept_out.any() else None,
        "numbers": {name: float(value) for name, value in stage.numbers.rig_numbers(joint).items()},
        "zero": float(stage.numbers.values.get("zero", 0.0)),
        "not_determined": list(stage.open),
    }
