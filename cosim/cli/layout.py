"""Layouts of other programs for the signals of a rig."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from cosim.core.errors import InputError
from cosim.output.console import refuse_inputs
from cosim.output.layouts import (
    foxglove_layout,
    plotjuggler_layout,
    recording_name,
    stream_name,
    tabs_of,
)
from cosim.output.output_files import check_output, identity, write_file
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig_files import input_files
from cosim.rig.run.run_metadata import run_metadata_of
from cosim.rig.run.stream import streamed_columns
from cosim.rig.scene import scene_of_rig
from cosim.rig.wiring.wired_rig import WiredRig


class LayoutKind(NamedTuple):
    """A viewer for which layouts are written. suffix: of the file; make(rig, for recordings) -> its text."""

    suffix: str
    make: Callable[[WiredRig, bool], str]


def plotjuggler_of(rig: WiredRig, recording: bool) -> str:
    metadata = run_metadata_of(rig)
    units = list(metadata.units.items())
    shown = units if recording else [units[k] for k in streamed_columns(rig.spec, tuple(metadata.units))]
    return plotjuggler_layout(tabs_of(dict(shown), metadata.joints), recording_name if recording else stream_name)


def foxglove_of(rig: WiredRig, recording: bool) -> str:
    """The same for recordings and runs."""
    metadata = run_metadata_of(rig)
    return foxglove_layout(tabs_of(metadata.units, metadata.joints), scene_of_rig(rig))


KINDS = {
    "plotjuggler": LayoutKind(".plotjuggler.xml", plotjuggler_of),
    "foxglove": LayoutKind(".foxglove.json", foxglove_of),
}


def check_layout(rig: Path, kind: str, recording: bool, output: Path | None) -> None:
    """Raises InputError for a file that cannot be written, and for what has no meaning."""
    if recording and kind != "plotjuggler":
        raise InputError("a layout of Foxglove is for recordings and runs alike; take it out", "--recording")
    suffix = Path(KINDS[kind].suffix).suffix
    check_output(_layout_path(rig, kind, output), "-o", (suffix,), {identity(rig): "the rig itself"})


def write_layout(
    rig: WiredRig, kind: str, recording: bool, output: Path | None, overrides: Iterable[Override] = ()
) -> Path:
    """output: by default named as the rig file, in the current folder. Raises InputError for a file of the rig, and for
    one that cannot be written."""
    path = _layout_path(rig.spec.path, kind, output)
    refuse_inputs(input_files(rig, overrides), path, "-o")
    write_file(path, KINDS[kind].make(rig, recording).encode(), "layout")
    return path


def _layout_path(rig: Path, kind: str, output: Path | None) -> Path:
    return Path(rig.stem + KINDS[kind].suffix) if output is None else output
