"""`cosim explain F.mcap`: prints the explanation of a stop and writes it as JSON."""

from __future__ import annotations

from pathlib import Path

from cosim.apps.post_mortem.explanation import explain
from cosim.output.console import check_targets, quantity_of
from cosim.output.output_files import write_file
from cosim.rig.run.run import open_recording

SHORTEST, LONGEST = 1e-3, 3600.0  # s


def explain_recording(path: Path, last: str, json: str | None) -> None:
    """last: time before the stop with its unit; json: file, - for stdout. Raises InputError."""
    seconds = quantity_of(last, "s", "--last", (SHORTEST, LONGEST), "a time from 1 ms to 1 h, such as 2 s")
    check_targets([], json)
    run = open_recording(path)
    found = explain(run, str(path), seconds)
    if json != "-":
        if run.lacks:
            print(f"warning  {path}: {run.lacks}")
        print(*found.lines(), sep="\n")
    if json is None:
        return
    import orjson

    text = orjson.dumps(found.as_json(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if json == "-":
        print(text.decode(), end="")
    else:
        write_file(json, text, "explanation")
        print(f"wrote    explanation {json}")
