"""Layouts of other programs for the signals of a rig."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cosim.errors import InputError
from cosim.output.layouts.foxglove import foxglove_layout
from cosim.output.layouts.plotjuggler import plotjuggler_layout, recording_name, stream_name
from cosim.output.layouts.tabs import tabs_of
from cosim.rig.build.wired_rig import WiredRig
from cosim.rig.outline import outline_of
from cosim.rig.scene import scene_of_rig
from cosim.rig.stream import streamed_columns


class LayoutKind(NamedTuple):
    """suffix: of the file; make(rig, for recordings) -> its text."""

    suffix: str
    make: Callable[[WiredRig, bool], str]


def plotjuggler_of(rig: WiredRig, recording: bool) -> str:
    outline, names = outline_of(rig), tuple(outline_of(rig).units)
    signals = names if recording else [names[k] for k in streamed_columns(rig.spec, names)]
    return plotjuggler_layout(tabs_of(signals, outline.joints), recording_name if recording else stream_name)


def foxglove_of(rig: WiredRig, recording: bool) -> str:
    """The same for recordings and runs."""
    outline = outline_of(rig)
    return foxglove_layout(tabs_of(tuple(outline.units), outline.joints), scene_of_rig(rig))


KINDS = {
    "plotjuggler": LayoutKind(".plotjuggler.xml", plotjuggler_of),
    "foxglove": LayoutKind(".foxglove.json", foxglove_of),
}


def write_layout(rig: WiredRig, kind: str, recording: bool, output: Path | None) -> Path:
    """output: by default named as the rig file, in the current folder. Raises InputError for the rig itself."""
    suffix, make = KINDS[kind]
    path = Path(rig.spec.path.stem + suffix) if output is None else output
    if path.exists() and path.samefile(rig.spec.path):
        raise InputError(f"{path} is the rig; choose another file", "-o")
    path.write_text(make(rig, recording), encoding="utf-8")
    return path
