"""`cosim export code` and `cosim export fmu`: the ticks of a rig, or one of its parts, as a file for other machines and
programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cosim.apps.deploy.check import check_same, check_tools, compared
from cosim.apps.deploy.description import as_text
from cosim.apps.deploy.exportable import FileKind, check_rig
from cosim.apps.deploy.fmu_export.fmu_file import packed
from cosim.apps.deploy.fmu_export.part_unit import unit_of_part
from cosim.apps.deploy.fmu_export.rig_unit import unit_of_rig
from cosim.apps.deploy.gpu_kernels import EXPERIMENTAL, ptx_files
from cosim.apps.deploy.identifiers import prefix_of
from cosim.apps.deploy.object_files import PROCESSORS, object_files
from cosim.apps.deploy.page.page import page_of
from cosim.apps.deploy.wasm_rig import wasm_rig
from cosim.core.compile.object_code import CodeTarget
from cosim.core.compile.targets import PTX, compiles, processors, targets
from cosim.core.errors import InputError, did_you_mean
from cosim.output.console import refuse_inputs
from cosim.output.output_files import check_output, check_suffix, identity, write_file
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rerun import recorded
from cosim.rig.rig import load_rig
from cosim.rig.rig_files import input_files
from cosim.rig.wiring.wired_rig import WiredRig

COMMAND = "cosim export code"
# suffix -> content of a file
Files = Mapping[str, bytes]


class Choices(NamedTuple):
    """What is chosen beside the rig, the target and the place. cpu: the processor; check: a recording of the engine,
    which the code has to repeat; part: of the rig, None for the whole; fmi: major version; inputs: see
    `fmu_export.inputs.parametrised`."""

    cpu: str | None = None
    check: Path | None = None
    part: str | None = None
    fmi: str | None = None
    inputs: Sequence[str] = ()


OPTIONS = {"cpu": "--cpu", "check": "--check", "part": "--part", "fmi": "--fmi", "inputs": "--input"}
DEFAULT_FMI = "2"


class Made(NamedTuple):
    """The files of a rig by their suffixes; about: what is said of the first one beside its size."""

    files: Files
    about: str = ""


@dataclass(frozen=True)
class Target:
    """What a rig can be exported for. make: from the rig, the name of the files and the machine; row: of this machine
    in the table of the compiler; suffixes: of its files; takes: the `Choices` that it has; has_identifiers: whether
    names in its files begin with theirs."""

    make: Callable[[WiredRig, str, CodeTarget, Choices], Made]
    row: str
    suffixes: Sequence[str]
    takes: Sequence[str] = ("cpu",)
    has_identifiers: bool = True


def build(
    path: Path,
    overrides: Sequence[Override],
    target: str,
    output: Path,
    choices: Choices,
    trust: bool = False,
) -> None:
    """Write the files of a target. output: a folder, where they are named as the rig file or the part, or a file of a
    target that has one only; trust: code in a recording may run, see `rig_of_files`.

    Raises InputError, CompileError, RunError for a compiler that fails and for code that does not repeat the recording.
    """
    if target not in TARGETS:
        raise InputError(f"there is no target '{target}'{did_you_mean(target, TARGETS)}", "--target")
    chosen = TARGETS[target]
    _check_choices(target, choices)
    machine = _machine(target, chosen.row, choices.cpu)
    is_file = len(chosen.suffixes) == 1 and output.suffix != "" and not output.is_dir()
    folder = output.parent if is_file else output
    _check_folder(folder)
    if is_file:
        check_suffix(output, chosen.suffixes, "-o")
    known = None
    if choices.check is not None:
        check_tools(target, machine)
        known = recorded(choices.check, compiled=True, trust=trust)
    rig = load_rig(path, overrides)
    name = choices.part or (prefix_of(path.stem, str(path)) if chosen.has_identifiers else path.stem)
    files = {suffix: output if is_file else folder / f"{name}{suffix}" for suffix in chosen.suffixes}
    if folder.is_dir():
        for suffix, file in files.items():
            check_output(file, "-o", (suffix,), {identity(path): "the rig itself"})
            refuse_inputs(input_files(rig, overrides), file, "-o")
    if choices.check is not None and known is not None:
        check_same(rig, name, known, choices.check)
    made = chosen.make(rig, name, machine, choices)
    folder.mkdir(parents=True, exist_ok=True)
    about = made.about
    for suffix, content in made.files.items():
        write_file(files[suffix], content, "code")
        print(f"wrote    {files[suffix]}: {len(content) / 1000:,.1f} kB{about}")
        about = ""
    if choices.check is not None and known is not None:
        found = compared(rig, name, made.files[".o"], target, known, choices.check)
        print(f"checked  {choices.check}: {found}")
        if known.run.lacks:
            print(f"warning  {choices.check}: {known.run.lacks}")


def _check_choices(target: str, choices: Choices) -> None:
    """Raises InputError for a choice that the target does not have."""
    for field, option in OPTIONS.items():
        if getattr(choices, field) and field not in TARGETS[target].takes:
            others = ", ".join(name for name, each in TARGETS.items() if field in each.takes)
            raise InputError(f"is for {others}, not for {target}; take it out", option)


def _check_folder(folder: Path) -> None:
    """Raises InputError for one that neither exists nor can be made."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        raise InputError(f"{there}: is no folder; name one", "-o")
    if not os.access(there, os.W_OK):
        raise InputError(f"{there}: cannot be written to; choose another folder", "-o")


def _wasm(rig: WiredRig, name: str, machine: CodeTarget, choices: Choices) -> Made:
    check_rig(rig, FileKind("a module of WebAssembly", COMMAND))
    module, facts = wasm_rig(rig, name, machine, machine.lanes)
    return Made({".wasm": module.code, ".json": as_text(facts).encode()})


def _page(rig: WiredRig, name: str, machine: CodeTarget, choices: Choices) -> Made:
    check_rig(rig, FileKind("a page", COMMAND))
    return Made({".html": page_of(rig, name, machine).encode()})


def _ptx(rig: WiredRig, name: str, machine: CodeTarget, choices: Choices) -> Made:
    files = ptx_files(rig, name, machine)
    print(f"note     {EXPERIMENTAL}")
    return Made(files)


def _objects(rig: WiredRig, name: str, machine: CodeTarget, choices: Choices) -> Made:
    return Made(object_files(rig, name, machine))


def _fmu(rig: WiredRig, name: str, machine: CodeTarget, choices: Choices) -> Made:
    version = int(choices.fmi or DEFAULT_FMI)
    if choices.part is not None and choices.inputs:
        raise InputError("a part has the inputs that its file declares; leave the option out", "--input")
    whole = choices.part is None
    unit = unit_of_rig(rig, choices.inputs) if whole else unit_of_part(rig, name, version)
    step = unit.outline.fixed_step
    steps = "steps of any length" if step is None else f"steps of {step:g} s"
    return Made({".fmu": packed(unit, version)}, f", FMI {version}.0, {steps}")


def _machine(target: str, row: str, cpu: str | None) -> CodeTarget:
    """The row of the table, with this CPU instead of its own. Raises InputError for one that the target does not
    have."""
    found = targets()[row]
    if cpu is None:
        return found
    known = processors(found.triple)
    if cpu not in known:
        raise InputError(f"{target} has no processor '{cpu}'{did_you_mean(cpu, known)}", "--cpu")
    if not compiles(found.triple, cpu):
        raise InputError(f"'{cpu}' runs no code for {target}; name another processor", "--cpu")
    return found._replace(cpu=cpu)


TARGETS: dict[str, Target] = {
    "page": Target(_page, "wasm", (".html",)),
    "wasm": Target(_wasm, "wasm", (".wasm", ".json")),
    PTX: Target(_ptx, PTX, (".ptx", ".json")),
    **{name: Target(_objects, name, (".o", ".h", ".json"), takes=("cpu", "check")) for name in PROCESSORS},
    "fmu": Target(_fmu, "x86_64", (".fmu",), takes=("part", "fmi", "inputs"), has_identifiers=False),
}
