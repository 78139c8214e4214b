"""FMUs of rigs, and their instances in the importer fmpy, alike for FMI 2.0 and 3.0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fmpy
from fmpy.simulation import instantiate_fmu

from cosim import Rig
from cosim.apps.deploy.fmu_export.fmu_file import fmu_of

VERSIONS = (2, 3)


def written(rig: Rig, folder: Path, version: int, *inputs: str) -> Path:
    """The file of its FMU."""
    file = folder / f"{rig.spec.name}_{version}.fmu"
    file.write_bytes(fmu_of(rig, version, inputs))
    return file


class ImportedUnit:
    """An instance that can be stepped; its variables go by their names."""

    def __init__(self, file: Path, folder: Path, token: str = "") -> None:
        """token: instead of the one in the file."""
        self.folder = Path(fmpy.extract(str(file), str(folder)))
        self.description = fmpy.read_model_description(str(file))
        self.description.guid = token or self.description.guid
        self.version = int(self.description.fmiVersion[0])
        self.messages: list[str] = []
        self.references = {item.name: item.valueReference for item in self.description.modelVariables}
        self.step = float(self.description.defaultExperiment.stepSize)
        self.number = 0
        self.fmu: Any = instantiate_fmu(str(self.folder), self.description, "CoSimulation", logger=self._hear)

    def _hear(self, *words: Any) -> None:
        self.messages.append(words[-1].decode())

    def begin(self, start: float = 0.0) -> None:
        if self.version == 2:
            self.fmu.setupExperiment(startTime=start)
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=start)
        self.fmu.exitInitializationMode()

    def __getitem__(self, names: tuple[str, ...]) -> list[float]:
        get = self.fmu.getReal if self.version == 2 else self.fmu.getFloat64
        return list(get([self.references[name] for name in names]))

    def set(self, name: str, value: float) -> None:
        (self.fmu.setReal if self.version == 2 else self.fmu.setFloat64)([self.references[name]], [value])

    def advance(self, count: int, ticks: int = 1) -> None:
        """So many steps of so many ticks."""
        for _ in range(count):
            self.fmu.doStep(self.number * self.step, ticks * self.step)
            self.number += ticks


@contextmanager
def imported(file: Path, folder: Path) -> Iterator[ImportedUnit]:
    """An instance that is freed; folder: for its files."""
    unit = ImportedUnit(file, folder)
    try:
        yield unit
    finally:
        unit.fmu.freeInstance()
