"""`cosim export code`: the ticks of a rig as a file for another machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cosim.apps.deploy.check import check_same, check_target, check_tools, compared
from cosim.apps.deploy.description import as_text
from cosim.apps.deploy.exportable import FileKind, check_rig
from cosim.apps.deploy.gpu_kernels import EXPERIMENTAL, ptx_files
from cosim.apps.deploy.identifiers import prefix_of
from cosim.apps.deploy.object_files import PROCESSORS, object_files
from cosim.apps.deploy.page.page import page_of
from cosim.apps.deploy.wasm_rig import wasm_rig
from cosim.core.compile.object_code import CodeTarget
from cosim.core.compile.targets import PTX, compiles, processors, targets
from cosim.core.errors import InputError, did_you_mean
from cosim.output.console import refuse_inputs
from cosim.output.output_files import check_output, identity, write_file
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rerun import recorded
from cosim.rig.rig import load_rig
from cosim.rig.rig_files import input_files
from cosim.rig.wiring.wired_rig import WiredRig

COMMAND = "cosim export code"
# suffix -> content of a file
Files = Mapping[str, bytes]


def build(
    path: Path,
    overrides: Sequence[Override],
    target: str,
    cpu: str | None,
    folder: Path,
    recording: Path | None = None,
    trust: bool = False,
) -> None:
    """Write the files into the folder, named as the rig file. recording: of the engine, which the code has to repeat;
    trust: code in it may run, see `rig_of_files`.

    Raises InputError, CompileError and, where it does not, RunError.
    """
    if target not in TARGETS:
        raise InputError(f"there is no target '{target}'{did_you_mean(target, TARGETS)}", "--target")
    make, row, suffixes = TARGETS[target]
    machine = _machine(target, row, cpu)
    _check_folder(folder)
    known = None
    if recording is not None:
        check_target(target)
        check_tools(target, machine)
        known = recorded(recording, compiled=True, trust=trust)
    rig = load_rig(path, overrides)
    name = prefix_of(path.stem, str(path))
    if recording is not None and known is not None:
        check_same(rig, name, known, recording)
    made = make(rig, name, machine)
    folder.mkdir(parents=True, exist_ok=True)
    files = {suffix: folder / f"{name}{suffix}" for suffix in suffixes}
    for suffix, file in files.items():
        check_output(file, "-o", (suffix,), {identity(path): "the rig itself"})
        refuse_inputs(input_files(rig, overrides), file, "-o")
    for suffix, content in made.items():
        write_file(files[suffix], content, "code")
        print(f"wrote    {files[suffix]}: {len(content) / 1000:,.1f} kB")
    if recording is not None and known is not None:
        print(f"checked  {recording}: {compared(rig, name, made['.o'], target, known, recording)}")
        if known.run.lacks:
            print(f"warning  {recording}: {known.run.lacks}")


def _check_folder(folder: Path) -> None:
    """Raises InputError for one that neither exists nor can be made."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        raise InputError(f"{there}: is no folder; name one", "-o")
    if not os.access(there, os.W_OK):
        raise InputError(f"{there}: cannot be written to; choose another folder", "-o")


def _wasm(rig: WiredRig, name: str, machine: CodeTarget) -> Files:
    check_rig(rig, FileKind("a module of WebAssembly", COMMAND))
    module, facts = wasm_rig(rig, name, machine, machine.lanes)
    return {".wasm": module.code, ".json": as_text(facts).encode()}


def _page(rig: WiredRig, name: str, machine: CodeTarget) -> Files:
    check_rig(rig, FileKind("a page", COMMAND))
    return {".html": page_of(rig, name, machine).encode()}


def _ptx(rig: WiredRig, name: str, machine: CodeTarget) -> Files:
    files = ptx_files(rig, name, machine)
    print(f"note     {EXPERIMENTAL}")
    return files


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


# name -> what makes its files, its row in the table of the compiler, and their suffixes
TARGETS: dict[str, tuple[Callable[[WiredRig, str, CodeTarget], Files], str, Sequence[str]]] = {
    "page": (_page, "wasm", (".html",)),
    "wasm": (_wasm, "wasm", (".wasm", ".json")),
    PTX: (_ptx, PTX, (".ptx", ".json")),
    **{name: (object_files, name, (".o", ".h", ".json")) for name in PROCESSORS},
}
