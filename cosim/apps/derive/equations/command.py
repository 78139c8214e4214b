"""`cosim derive --equations`: the equations of motion of a rig's mechanism or a robot, printed or written to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.apps.derive.comparison import consistent_states
from cosim.apps.derive.equations.cartesian import cartesian_derivation
from cosim.apps.derive.equations.components import Derivation, derived
from cosim.apps.derive.equations.composition import comparison_lines, compose, composed
from cosim.apps.derive.equations.files import WRITERS, file_lines
from cosim.apps.derive.equations.header import count_lines
from cosim.apps.derive.equations.languages import MATLAB, PYTHON, C, matlab_name
from cosim.apps.derive.equations.latex import latex_lines
from cosim.apps.derive.equations.parameters import with_symbols
from cosim.apps.derive.equations.stages import (
    NO_INVERSE,
    POINT_MASSES,
    difference_lines,
    is_singular,
    point_masses,
    read_state,
)
from cosim.apps.derive.equations.text import check_size, text_lines
from cosim.apps.derive.graph_report import keep_files_of
from cosim.apps.derive.plant_model import read_model
from cosim.core.compile.trace import inlined, symbols
from cosim.core.errors import CompileError, InputError, did_you_mean
from cosim.mechanics.formulations import known_formulations
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.part_names import shown_name
from cosim.output.output_files import check_output, identity

FILES = {
    "text": (".txt",), "latex": (".tex",), "c": (C.suffix,), "python": (PYTHON.suffix,), "matlab": (MATLAB.suffix,)
}  # fmt: skip

PLACE = "--equations"
CARTESIAN = "cartesian"

LINES: Mapping[str, Callable[[Derivation, Path | None], list[str]]] = {
    "text": lambda d, file: text_lines(d),
    "latex": lambda d, file: latex_lines(d),
    **{to: lambda d, file, to=to: file_lines(d, to, file) for to in WRITERS},
}


@dataclass(frozen=True)
class Options:
    """What is derived. symbols: in place of numbers. frames: with position, pose and Jacobian. load: the frame on which
    a force and a moment act. point_masses: without the bodies' own inertia; `at` are states in which that is
    compared. mount: the file of a manipulator on the frame `on` of the mechanism. formulation: None for joint
    coordinates."""

    symbols: bool = False
    frames: Sequence[str] = ()
    load: str | None = None
    point_masses: bool = False
    at: Sequence[str] = ()
    mount: Path | None = None
    on: str | None = None
    formulation: str | None = None


def derive_equations(path: Path, file: Path | None = None, to: str = "text", options: Options = Options()) -> None:
    """Print the equations of a rig or robot file, or write them to `file`.

    Raises InputErrors for errors in the rig or robot; InputError for an unknown frame, a file that cannot be written,
    and equations too long to print.
    """
    if file is not None:
        check_file(file, to, [path, *([options.mount] if options.mount else [])])
    if options.formulation is not None:
        check_formulation(options)
    model = read_model(path)
    if options.mount is not None or options.on is not None:
        _derive_composed(path, model, file, to, options)
        return
    if not model.nv:
        raise InputError("nothing moves in this mechanism; there are no equations", str(path))
    check_motions(model, path)
    if options.formulation is not None:
        model = without_redundant(model)
        stage, parameters = with_symbols(model.equations) if options.symbols else (model.equations, [])
        write(cartesian_derivation(model, stage, parameters), file, to)
        return
    if to in ("text", "latex"):
        check_size(model)
    if options.at and not options.point_masses:
        raise InputError("gives states for the comparison with point masses; add --point-masses", "--at")
    states = [read_state(text, model) for text in options.at]
    stage = point_masses(model.equations) if options.point_masses else model.equations
    singular = options.point_masses and is_singular(stage)
    notes = (POINT_MASSES,) * options.point_masses + (NO_INVERSE,) * singular
    equations, parameters = with_symbols(stage) if options.symbols else (stage, [])
    d = derived(model, equations, options.frames, options.load, parameters, singular, notes)
    write(d, file, to)
    if options.point_masses and (file is not None or to == "text"):
        print("\n".join(["", *difference_lines(model, model.equations, stage, states)]))


def check_motions(model: Model, path: Path) -> None:
    """Raises InputError for a given motion that is no formula of time, such as one through points."""
    t, none = symbols("t", ())[1], np.zeros(0)
    for joint, kind in zip(model.equations.tree.joints, model.equations.tree.kinds, strict=True):
        if not kind.timed or kind.nq:
            continue
        try:
            with inlined():
                kind.place(none, t)
                kind.hinge(none, none, t)
        except CompileError as error:
            what = f"the given motion of '{shown_name(joint.child)}' cannot be written as a formula: {error.what}"
            raise InputError(f"{what}; derive it with a motion that is one, such as a sine", str(path)) from None


def check_formulation(options: Options) -> None:
    """Raises InputError for a formulation whose equations are not printed, and for options of joint coordinates."""
    name = options.formulation
    if name != CARTESIAN:
        known = known_formulations()
        in_joints = "those of joint coordinates are printed without --formulation, and --compare shows that all agree"
        what = f"the equations of '{name}' are not printed; {in_joints}" if name in known else (
            f"there is no formulation '{name}'{did_you_mean(str(name), [CARTESIAN, *known])}"
        )  # fmt: skip
        raise InputError(f"{what}; this option takes {CARTESIAN}", "--formulation")
    given = {"--frame": options.frames, "--load": options.load, "--point-masses": options.point_masses}
    given |= {"--mount": options.mount, "--on": options.on, "--at": options.at}
    for option in (option for option, value in given.items() if value):
        raise InputError(f"is for equations in joint coordinates; take it or --formulation {CARTESIAN} out", option)


def without_redundant(model: Model) -> Model:
    """Without rows that follow from others, with which the descriptor matrix would be singular; as it is where no
    position with closed loops is found."""
    if not model.equations.constraints.members:
        return model
    try:
        return consistent_states(model)[0]
    except InputError:
        return model


def check_file(file: Path, to: str, rigs: Sequence[Path], place: str = PLACE) -> None:
    """Raises InputError for a file that cannot be written, that a rig or the manipulator on it uses, or has not the
    name of a file in this language; rigs: the rig, and what it carries."""
    fitting = next((other for other, suffixes in FILES.items() if file.suffix.lower() in suffixes), to)
    if fitting != to:
        other = file.with_suffix(FILES[to][0])
        raise InputError(f"{file}: is a file of --to {fitting}, not of {to}; pass that, or choose {other}", place)
    names = dict(zip(map(identity, rigs), ("the rig itself", "the manipulator of --mount"), strict=False))
    check_output(file, place, FILES[to], names)
    for rig in rigs:
        keep_files_of(rig, file, place)
    if to == "matlab" and file.stem != (name := matlab_name(file.stem)):
        what = "MATLAB knows a function by the name of its file, and this one is no identifier"
        raise InputError(f"{file}: {what}; choose {name}{file.suffix}", place)


def _derive_composed(path: Path, platform: Model, file: Path | None, to: str, options: Options) -> None:
    """Print or write the equations of a platform with a manipulator, and compare them with those derived in one."""
    mount, on = mount_of(options.mount, options.on)
    for option, given in (("--symbols", options.symbols), ("--point-masses", options.point_masses)):
        if given:
            raise InputError("is not for equations of a platform with a manipulator; take it out", option)
    manipulator = read_model(mount)
    for part, file_of_part in ((platform, path), (manipulator, mount)):
        check_motions(part, file_of_part)
    parts = compose(platform, manipulator, on)
    d = composed(parts, options.frames, options.load)
    write(d, file, to)
    if file is not None or to == "text":
        in_one = derived(parts.joined, frames=options.frames, load=options.load)
        print("\n".join(["", *comparison_lines(d, in_one)]))


def mount_of(mount: Path | None, on: str | None) -> tuple[Path, str]:
    """The file and the frame of --mount and --on. Raises InputError where one of them is missing, and for no file."""
    if mount is None or on is None:
        missing = "--mount" if mount is None else "--on"
        raise InputError("a manipulator is mounted with --mount RIG|ROBOT --on FRAME; give both", missing)
    if not mount.is_file():
        found = f"'{mount}' is a folder" if mount.is_dir() else f"there is no file '{mount}'"
        raise InputError(f"{found}; name a rig or a robot file", "--mount")
    return mount, on


def write(d: Derivation, file: Path | None, to: str) -> None:
    """To a file, with a table of the operations, or printed."""
    lines = LINES[to](d, file)
    if file is None:
        print("\n".join(lines))
        return
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join([*count_lines(d), "", f"wrote    equations {file}"]))
