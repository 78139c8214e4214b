"""The table of the named numbers of a rig: what each one is, and which one a name means.

A live one, a number of a controller such as `arm.kp`, can be set while a run goes on. One per run, a number of the
plant such as `mechanism.link.mass`, can be an input of the ticks of many runs. A fixed one, such as a number of a part
`hoist.stiffness`, is constant while the rig is loaded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.core.errors import InputError, SourceLocation, did_you_mean, near_names
from cosim.core.types import Array
from cosim.rig.plant_parameters import PlantParameter, plant_parameters_of
from cosim.rig.reading import schema
from cosim.rig.reading.schema import Reading
from cosim.rig.rig_parameter import RigParameter
from cosim.rig.sections.controllers import KEYS
from cosim.rig.sections.gain_schedules import unscheduled
from cosim.rig.sections.parts import FmuSpec, PartSpec
from cosim.rig.wiring.wired_rig import WiredRig

if TYPE_CHECKING:
    from cosim.output.stream.reading import ChangeKind, ParameterRecord

Found = tuple[RigParameter, int | None]  # … and the number of its element, where one is meant


@dataclass(frozen=True, eq=False)
class FileSection:
    """Where a file in a folder has a parameter: as the key of a section at a path, read into a class, for these
    joints."""

    folder: Path
    cls: type
    data: Mapping[str, Any]
    at: tuple
    key: str
    joints: tuple[str, ...]
    besides: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class LiveParameter(RigParameter):
    """A number of a controller. number: of the controller in the file; loop; field: its path in the parameters of the
    controller; where: in the parameters of the tick model; section: that a file is read from."""

    number: int
    loop: ControlLoop
    field: str
    where: slice
    section: FileSection
    changes: ClassVar[ChangeKind] = "live"
    bounded = True  # whether values between two that are right are right, as far as they are checked alone

    def read(self, value: Any, reading: Reading) -> list[float] | None:
        """The numbers (size,) in SI of a value as in the file; None after an error."""
        section, slides = self.section, zip(self.section.joints, self.linear, strict=True)
        data = {**section.data, section.key: plain(value)}
        kinds: dict[str, str | None] = {joint: "prismatic" if slide else "revolute" for joint, slide in slides}
        of_joints = reading.of(kinds, len(section.joints))
        params = schema.read(section.cls, data, section.at, of_joints, besides=section.besides)
        found = None if params is None else getattr(params, section.key)
        return None if found is None else list(found) if isinstance(found, tuple) else [found]

    def wrong(self, numbers: Array) -> str:
        """What is wrong with numbers (size,) that a file could not have, or ""."""
        reading = self.reading(SourceLocation(""))
        self.read(self.value(numbers), reading)
        return reading.errors[0].what if reading.errors else ""

    def reading(self, place: SourceLocation) -> Reading:
        """For `read`. place: of its errors."""
        return Reading(lambda path: place, [], self.section.folder)


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedParameter(RigParameter):
    """A parameter that is constant while its rig is loaded. given: its value, as users read it."""

    given: Any


class ParameterTable:
    """The parameters of a wired rig by name, in the order of its file. See `table_of`."""

    def __init__(self, rig: WiredRig) -> None:
        self._rig = rig

    @cached_property
    def live(self) -> dict[str, LiveParameter]:
        found, rig, slides = dict[str, LiveParameter](), self._rig, self._slides
        for number, loop in enumerate(rig.tick_model.loops):
            first = loop.parameter_slice.start
            for field, place in loop.tunables.fields.items():
                name, section = f"{loop.name}.{field}", self._section(number, field)
                count = None if loop.tunables.is_single(field) else place.stop - place.start
                found[name] = LiveParameter(
                    name,
                    f"controllers.{name}",
                    loop.tunables.leaves[field].declared,
                    count,
                    section.joints if count == len(section.joints) else (),
                    tuple(slides[joint] for joint in section.joints),
                    number=number,
                    loop=loop,
                    field=field,
                    where=slice(first + place.start, first + place.stop),
                    section=section,
                )
        return found

    @cached_property
    def per_run(self) -> dict[str, PlantParameter]:
        return plant_parameters_of(self._rig)

    @cached_property
    def fixed(self) -> dict[str, FixedParameter]:
        found = list[FixedParameter]()
        for spec in self._rig.spec.controllers:
            slides = {joint: self._slides[joint] for joint in spec.joints}
            found += _fixed(spec.name, f"controllers.{spec.name}", spec.plugin.params, slides)
            if spec.trajectory is not None:
                name = f"{spec.name}.trajectory"
                found += _fixed(name, f"controllers.{name}", spec.trajectory.params, slides)
        for spec in self._rig.spec.parts:
            if isinstance(spec, PartSpec):
                found += _fixed(spec.name, f"parts.{spec.name}.params", spec.plugin.params, {})
            else:
                found += self._of_fmu(spec)
        return {parameter.name: parameter for parameter in found if parameter.name not in self.live}

    def unset(self) -> dict[str, ParameterRecord[Any]]:
        """What clients of a run see of the parameters that no run changes."""
        per_run = {name: number.record(number.value(number.values)) for name, number in self.per_run.items()}
        return per_run | {name: parameter.record(parameter.given) for name, parameter in self.fixed.items()}

    def _of_fmu(self, spec: FmuSpec) -> Iterator[FixedParameter]:
        """What the rig gives an FMU before it starts."""
        assert self._rig.tick_model.coupling is not None
        for name, (given, unit, least, greatest, about) in self._rig.tick_model.coupling.start_values[
            spec.name
        ].items():
            declared = {"unit": unit, "min": least, "max": greatest, "doc": about}
            count = len(given) if isinstance(given, list) else None
            yield FixedParameter(f"{spec.name}.{name}", f"{spec.params_key}.{name}", declared, count, given=given)

    @cached_property
    def _slides(self) -> dict[str, bool]:
        """Of each joint, whether it is linear."""
        units = self._rig.plant.model.dof_units
        return dict(zip(self._rig.joints, (unit == "m" for unit in units), strict=True))

    def find(self, name: str, per_run: bool = True) -> Found:
        """The parameter, and the number of its element in a name such as `arm.kp/elbow`. per_run: whether it may be a
        number of the plant. Raises ValueError with a message for the user."""
        for end in (len(name), *(k for k, sign in enumerate(name) if sign == "/")):  # links and parts may have it too
            whole, label = name[:end], name[end + 1 :]
            parameter = self.live.get(whole) or (self.per_run.get(whole) if per_run else None)
            if parameter is None and (whole in self.fixed or whole in self.per_run):
                raise ValueError(self.unknown(whole))
            if parameter is None:
                continue
            if end == len(name):
                return parameter, None
            if label not in parameter.labels:
                near = did_you_mean(label, parameter.labels) if parameter.labels else "; it is a single number"
                raise ValueError(f"it has no element for '{label}'{near}")
            return parameter, parameter.labels.index(label)
        raise ValueError(self.unknown(name))

    def find_all(self, names: Iterable[str], errors: list[InputError], per_run: bool = True) -> dict[str, Found]:
        """By name, as `find`; errors are recorded, one too for an element of what is given as a whole."""
        found, given = dict[str, Found](), dict.fromkeys(map(str, names))
        for name in given:
            try:
                parameter, element = found[name] = self.find(name, per_run)
                if element is not None and parameter.name in given:
                    raise ValueError(f"'{parameter.name}' is given as a whole too; give one of the two")
            except ValueError as error:
                errors.append(InputError(str(error), SourceLocation(f"parameter '{name}'")))
        return found

    def values(self, parameters: Array | None = None) -> dict[str, float | list[float]]:
        """Of the live ones in SI, a list where there is one per joint. parameters (np,): of the tick model, by default
        the present ones."""
        present = self._rig.tick_model.parameters if parameters is None else parameters
        return {name: item.value(present[item.where]) for name, item in self.live.items()}

    def numbers(self, name: str) -> Array:
        """(size,) the present ones of a parameter."""
        live = self.live.get(name)
        return self.per_run[name].values if live is None else self._rig.tick_model.parameters[live.where]

    def unknown(self, name: str) -> str:
        """Why no live parameter has this name, and what to do."""
        if name in self.fixed:
            return f"is fixed while the rig is loaded; load it with the override '{self.fixed[name].key}=…'"
        if name in self.per_run:
            fix = f"vary it by rollouts, or load the rig with the override '{self.per_run[name].key}=…'"
            return f"is a number of the plant, which no run changes; {fix}"
        for spec in self._rig.spec.parts:
            if isinstance(spec, FmuSpec) and name.startswith(f"{spec.name}."):
                key = f"{spec.params_key}.{name.removeprefix(f'{spec.name}.')}"
                return f"is not given to the FMU '{spec.name}'; load the rig with the override '{key}=…'"
        known = [*self.live.values(), *self.per_run.values(), *self.fixed.values()]
        short = next((parameter.name for parameter in known if parameter.key == name), "")
        near = f"; did you mean '{short}'?" if short else near_names(name, [parameter.name for parameter in known])
        return f"there is no such parameter{near}"

    def _section(self, number: int, field: str) -> FileSection:
        """A gain of a schedule is read as the parameter itself."""
        spec, at = self._rig.spec.controllers[number], ("controllers", number)
        folder, data = self._rig.spec.path.parent, self._rig.spec.source.data["controllers"][number]
        key, *inside = field.split(".")
        if key != "filters":
            cls = type(spec.plugin.params)
            return FileSection(folder, cls, unscheduled(data), at, key, spec.joints, ("type", *KEYS))
        k, path = int(inside[0]), (*at, key, int(inside[0]))
        one = spec.filters[k]
        return FileSection(folder, type(one.params), data[key][k], path, inside[1], one.joints, ("type",))


def table_of(rig: WiredRig) -> ParameterTable:
    """Made once for a rig."""
    if rig.parameter_table is None:
        rig.parameter_table = ParameterTable(rig)
    return rig.parameter_table


def _fixed(owner: str, key: str, params: Any, slides: Mapping[str, bool]) -> Iterator[FixedParameter]:
    """The fields of the parameters of an owner, which the file has at the key. slides: of its joints, whether they are
    linear."""
    for field in dataclasses.fields(params):
        given = _readable(getattr(params, field.name))
        count = len(given) if isinstance(given, list) else None
        joints, names = tuple(slides) if count == len(slides) else (), (f"{owner}.{field.name}", f"{key}.{field.name}")
        yield FixedParameter(*names, field.metadata, count, joints, tuple(slides.values()), given=given)


def _readable(value: Any) -> Any:
    """As JSON has it; what it does not have as text."""
    value = plain(value)
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {field.name: _readable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def plain(value: Any) -> Any:
    """Lists and numbers of Python, as in a file."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
