"""An FMU that this machine can run: its interface and binary, and the folder that it is extracted to."""

from __future__ import annotations

import re
import shutil
import subprocess
import weakref
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import Literal

from cosim.core.errors import did_you_mean, listed, shortened
from cosim.core.trust.unpacking import unpack_zip
from cosim.simulation.fmi.description import FmuDescription

Interface = Literal["co-simulation", "model exchange"]
INTERFACES: dict[Interface, str] = {"co-simulation": "coSimulation", "model exchange": "modelExchange"}  # of fmpy
COMPILERS = ("cc", "gcc", "clang")
COMPILE_TIME = 300.0  # s
NAME = re.compile(r"(?!\.{1,2}$)[^/\\\0]+")  # of a file, without a way to it


class FmuArchive(FmuDescription):
    """An FMU that this machine can run, extracted to a folder of its own until `close`.

    Raises InputError, with the file as its place, for one that it cannot run.
    """

    def __init__(self, path: Path, interface: Interface | None = None, shown: str = "") -> None:
        super().__init__(path, shown)
        self.interface = self._interface(interface)
        self.capabilities = getattr(self.description, INTERFACES[self.interface])
        self.identifier: str = self.capabilities.modelIdentifier
        if not NAME.fullmatch(self.identifier or ""):  # it names the binary: no other file is loaded than its own
            what = f"its modelIdentifier is no name of a file: '{shortened(self.identifier or '')}'"
            raise self._error(f"{what}; export it again")
        self._compiled = not self._check_platform()
        self.folder = Path(mkdtemp(prefix="cosim_fmu_"))
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self._extract()
            if self._compiled:
                self._compile()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._remove()

    def _interface(self, wanted: Interface | None) -> Interface:
        has = {name: getattr(self.description, field) is not None for name, field in INTERFACES.items()}
        offered: list[Interface] = [name for name in INTERFACES if has[name]]
        if not offered:
            raise self._error("offers neither co-simulation nor model exchange; export it for one of them")
        if wanted is not None and wanted not in has:
            raise self._error(f"there is no interface '{shortened(wanted)}'{did_you_mean(wanted, INTERFACES)}")
        if wanted is not None and wanted not in offered:
            raise self._error(f"offers no {wanted}; use {offered[0]}, or export it for {wanted}")
        return wanted or offered[0]

    def _platforms(self) -> tuple[str, ...]:
        """The folders of binaries that this machine can load."""
        return (self._fmpy.platform,) if self.version == "2.0" else (self._fmpy.platform_tuple,)

    def _check_platform(self) -> bool:
        """Whether the archive has a binary for this machine; else it has sources, and there is a compiler."""
        binaries = [PurePosixPath(name).parts for name in self.names if name.startswith("binaries/")]
        platforms = sorted({parts[1] for parts in binaries if len(parts) > 2})
        here = self._platforms()[0]
        if here in platforms:
            return True
        sources = [build for build in self.description.buildConfigurations if build.modelIdentifier == self.identifier]
        if not sources:
            found = f"has binaries for {listed(platforms)}, not" if platforms else "has no binaries, nor sources,"
            raise self._error(f"{found} for {here}; export it for {here}")
        if not any(map(shutil.which, COMPILERS)):
            only = f"for {here} only" if platforms else "only"
            raise self._error(
                f"has C sources {only}, and this machine has no C compiler; install {listed(COMPILERS[1:])}, "
                f"or export the FMU with binaries for {here}"
            )
        return False

    def _extract(self) -> None:
        unpack_zip(self.path, self.folder, self.shown)
        (self.folder / "resources").mkdir(exist_ok=True)

    def _compile(self) -> None:
        """The shared library of the sources, with the headers of FMI that fmpy brings."""
        compiler = next(filter(shutil.which, COMPILERS))
        headers = Path(self._fmpy.__file__).parent / "c-code"
        target = self.folder / "binaries" / self._platforms()[0]
        target.mkdir(parents=True, exist_ok=True)
        sources = self.folder / "sources"
        build = next(b for b in self.description.buildConfigurations if b.modelIdentifier == self.identifier)
        files = [str(sources / file) for group in build.sourceFileSets for file in group.sourceFiles]
        folders = [str(sources / each) for group in build.sourceFileSets for each in group.includeDirectories]
        for path in (*files, *folders):
            if not Path(path).resolve().is_relative_to(self.folder.resolve()):
                named = shortened(path.removeprefix(f"{sources}/"))
                raise self._error(f"its sources name a file outside the archive: '{named}'; export it again")
        defined = [d for group in build.sourceFileSets for d in group.preprocessorDefinitions]
        command = [compiler, "-shared", "-fPIC", "-O2", "-w", *files]
        command += [f"-I{folder}" for folder in (sources, *folders, headers)]
        command += [f"-D{d.name}" + (f"={d.value}" if d.value else "") for d in defined if not d.optional]
        command += ["-o", str(target / (self.identifier + self._fmpy.sharedLibraryExtension)), "-lm"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIME)
        if result.returncode:
            lines = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()
            reason = shortened(lines[0].replace(f"{self.folder}/", ""), 200) if lines else "no reason given"
            raise self._error(f"its C sources do not compile with {compiler}: {reason}; export it with binaries")
