"""`cosim build`: the ticks of a rig as a file for another machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cosim.compile.object_code import CodeTarget
from cosim.compile.targets import PTX, processors, targets
from cosim.deploy.check import compared
from cosim.deploy.description import as_text
from cosim.deploy.exportable import FileKind, check_rig
from cosim.deploy.gpu_kernels import EXPERIMENTAL, ptx_files
from cosim.deploy.identifiers import prefix_of
from cosim.deploy.object_files import PROCESSORS, object_files
from cosim.deploy.page.page import page_of
from cosim.deploy.playing import check_target, check_tools
from cosim.deploy.wasm_rig import wasm_rig
from cosim.errors import InputError, did_you_mean
from cosim.output.console import refuse_inputs
from cosim.output.output_files import check_output, identity, write_file
from cosim.rig.build.wired_rig import WiredRig
from cosim.rig.reading.yaml_source import Override
from cosim.rig.rig import load_rig
from cosim.rig.rig_files import input_files

COMMAND = "cosim build"
# suffix -> content of a file
Files = Mapping[str, bytes]


def build(
    path: Path, overrides: Sequence[Override], target: str, cpu: str | None, folder: Path, recording: Path | None = None
) -> None:
    """Write the files into the folder, named as the rig file. recording: of the engine, which the code has to repeat.

    Raises InputError, CompileError and, where it does not, RunError.
    """
    if target not in TARGETS:
        raise InputError(f"there is no target '{target}'{did_you_mean(target, TARGETS)}", "--target")
    make, suffixes = TARGETS[target]
    if recording is not None:
        check_target(target)
        check_tools(target, _machine(target, cpu))
    name = prefix_of(path.stem, str(path))
    files = {suffix: folder / f"{name}{suffix}" for suffix in suffixes}
    for suffix, file in files.items():
        check_output(file, "-o", (suffix,), {identity(path): "the rig itself"})
    rig = load_rig(path, overrides)
    for file in files.values():
        refuse_inputs(input_files(rig, overrides), file, "-o")
    made = make(rig, name, target, cpu)
    for suffix, content in made.items():
        write_file(files[suffix], content, "code")
        print(f"wrote    {files[suffix]}: {len(content) / 1000:,.1f} kB")
    if recording is not None:
        found = compared(rig, name, made[".o"], target, recording)
        print(f"checked  {recording}: {found}")


def _wasm(rig: WiredRig, name: str, target: str, cpu: str | None) -> Files:
    check_rig(rig, FileKind("a module of WebAssembly", COMMAND))
    machine = _machine(target, cpu)
    module, facts = wasm_rig(rig, name, machine, machine.lanes)
    return {".wasm": module.code, ".json": as_text(facts).encode()}


def _page(rig: WiredRig, name: str, target: str, cpu: str | None) -> Files:
    check_rig(rig, FileKind("a page", COMMAND))
    return {".html": page_of(rig, name, _machine("wasm", cpu)).encode()}


def _machine(target: str, cpu: str | None) -> CodeTarget:
    """The row of the table, with this CPU instead of its own. Raises InputError for one that it does not have."""
    found = targets()[target]
    if cpu is None:
        return found
    if cpu not in (known := processors(found.triple)):
        raise InputError(f"{target} has no processor '{cpu}'{did_you_mean(cpu, known)}", "--cpu")
    return found._replace(cpu=cpu)


def _ptx(rig: WiredRig, name: str, target: str, cpu: str | None) -> Files:
    files = ptx_files(rig, name, _machine(target, cpu))
    print(f"note     {EXPERIMENTAL}")
    return files


def _objects(rig: WiredRig, name: str, target: str, cpu: str | None) -> Files:
    return object_files(rig, name, _machine(target, cpu))


# name -> what makes its files, and their suffixes
TARGETS: dict[str, tuple[Callable[[WiredRig, str, str, str | None], Files], Sequence[str]]] = {
    "page": (_page, (".html",)),
    "wasm": (_wasm, (".wasm", ".json")),
    PTX: (_ptx, (".ptx", ".json")),
    **dict.fromkeys(PROCESSORS, (_objects, (".o", ".h", ".json"))),
}
