"""Tables of numbers in a file, used in laws by their names.

tables:
  friction: {x: [0 rad/s, 1 rad/s, 100 rpm], y: [0.2, 0.1, 0.4], interpolation: pchip, outside: linear}
  efficiency: {x: [0, 100], y: [0, 1, 2], z: [[0.5, 0.6, 0.7], [0.6, 0.8, 0.9]]}   # z: a row for each of x
  thrust: {file: thrust.csv, x: speed, y: force, units: {speed: rpm}}  # names of columns; `force [kN]` has its unit
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cosim.core.errors import InputError, did_you_mean
from cosim.core.interpolation import INTERPOLATIONS, OUTSIDE, LookupTable
from cosim.core.tables import open_table
from cosim.core.types import Array
from cosim.core.units import UNITS, known_unit, parse_any
from cosim.mechanics.bondgraph.expressions import FUNCTIONS
from cosim.rig.reading import schema
from cosim.rig.reading.schema import KeyPath, Reading
from cosim.rig.reading.yaml_values import YamlValue

AXES = ("x", "y", "z")  # the last one given has the values
CHOICES = {"interpolation": INTERPOLATIONS, "outside": OUTSIDE}
MOST_VALUES = 1000  # of a table; machine code grows with them


def read_tables(data: Mapping[str, YamlValue], path: KeyPath, reading: Reading) -> dict[str, LookupTable]:
    """By name; errors are recorded in `reading`."""
    found = {}
    for name, value in data.items():
        at = (*path, name)
        if not name.isidentifier() or name in FUNCTIONS:
            what = "is the name of a function" if name in FUNCTIONS else "is no name, of letters, digits and _"
            reading.fail(at, f"{what}; give the table another one")
            continue
        table = _table(value, at, reading)
        if table is not None:
            found[name] = table
    return found


def _table(value: YamlValue, path: KeyPath, reading: Reading) -> LookupTable | None:
    """None after an error."""
    data, before = reading.mapping(value, path), len(reading.errors)
    from_file = "file" in data
    schema.check_keys(data, (*AXES, *CHOICES, *(("file", "units") if from_file else ())), path, reading)
    chosen = {key: data.get(key, options[0]) for key, options in CHOICES.items()}
    for key, options in CHOICES.items():
        if chosen[key] not in options:
            reading.fail((*path, key), f"expected one of {', '.join(options)}; got {schema.show(chosen[key])}")
    arrays = _of_file(data, path, reading) if from_file else _written(data, path, reading)
    if arrays is None or len(reading.errors) > before:
        return None
    *points, values = arrays
    if values.size > MOST_VALUES:
        return reading.fail(path, f"{values.size} values are too many; keep {MOST_VALUES} or fewer")
    try:
        return LookupTable(tuple(points), values, **chosen)
    except ValueError as error:
        return reading.fail(path, str(error))


# --- in the rig file ---------------------------------------------------------------------------------


def _written(data: Mapping[str, YamlValue], path: KeyPath, reading: Reading) -> list[Array] | None:
    """Points of each axis, and values; None after an error."""
    for axis in AXES[:2]:
        if axis not in data:
            reading.fail(path, f"missing key '{axis}'; give points x and values y, or points x and y and values z")
            return None
    before, *points = len(reading.errors), *(axis for axis in AXES if axis in data)
    last = points.pop()
    arrays = [_numbers(data[axis], (*path, axis), reading) for axis in points]
    rows = data[last] if len(points) == 2 else [data[last]]
    at = (*path, last)
    if not isinstance(rows, list):
        reading.fail(at, f"expected a list with a row for each of x, got {schema.show(rows)}")
        return None
    places = [(*at, k) for k in range(len(rows))] if len(points) == 2 else [at]
    values = [_numbers(row, place, reading) for row, place in zip(rows, places, strict=True)]
    if len(reading.errors) > before:
        return None
    if len({len(row) for row in values}) > 1:
        return reading.fail(at, f"its rows have different lengths; give {len(arrays[-1])} values in each")
    return [*map(np.array, arrays), np.array(values if len(points) == 2 else values[0])]


def _numbers(value: YamlValue, path: KeyPath, reading: Reading) -> list[float]:
    if not isinstance(value, list) or not value:
        reading.fail(path, f"expected a list of numbers, got {schema.show(value)}")
        return []
    found = []
    for k, item in enumerate(value):
        number = quantity(item, (*path, k), reading)
        if number is not None:
            found.append(number)
    return found


def quantity(value: YamlValue, path: KeyPath, reading: Reading) -> float | None:
    """A number with a unit of any dimension, in SI; None after an error."""
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError(f"expected a number, got {schema.show(value)}")
        return parse_any(str(value))
    except ValueError as error:
        return reading.fail(path, str(error))


# --- in a file of its own ----------------------------------------------------------------------------


def _of_file(data: Mapping[str, YamlValue], path: KeyPath, reading: Reading) -> list[Array] | None:
    """Of a file with named columns. A table over two axes has a row for each pair of points. None after an error."""
    named = {axis: str(data.get(axis, axis)) for axis in AXES if axis in data or axis != "z"}
    file = reading.file(str(data["file"]), (*path, "file"))
    if file is None:
        return None
    try:
        table = open_table(file)
    except InputError as error:
        return reading.fail((*path, "file"), str(error))
    units, before = reading.mapping(data.get("units"), (*path, "units")), len(reading.errors)
    for column, unit in units.items():
        if column not in table.names:
            what = f"{file} has no column '{column}'{did_you_mean(column, table.names)}"
            reading.fail((*path, "units", column), what)
        elif known_unit(str(unit)) is None:
            reading.fail((*path, "units", column), f"there is no unit '{unit}'{did_you_mean(str(unit), UNITS)}")
    columns = dict[str, int]()
    for axis, column in named.items():
        try:
            columns[axis] = table.index(column)
        except InputError as error:
            reading.fail((*path, axis) if axis in data else path, f"{file}: {error.what}")
    if len(reading.errors) > before:
        return None
    given = {column: known_unit(str(unit)) for column, unit in units.items()}
    try:
        values = table.numbers(list(columns.values())).values
        names = [table.names[k] for k in columns.values()]
        factors = [UNITS[given.get(name) or table.units.get(name, "1")][1] for name in names]
        arrays = list((values * factors).T)
        return arrays if len(arrays) == 2 else _grid(*arrays)
    except InputError as error:
        return reading.fail((*path, "file"), str(error))
    except ValueError as error:
        return reading.fail((*path, "file"), str(error))


def _grid(x: Array, y: Array, z: Array) -> list[Array]:
    """Raises ValueError for points of a grid that are missing or given twice."""
    (first, i), (second, j) = np.unique(x, return_inverse=True), np.unique(y, return_inverse=True)
    values = np.full((len(first), len(second)), np.nan)
    values[i, j] = z
    missing = np.argwhere(np.isnan(values))
    if missing.size:
        k, n = missing[0]
        raise ValueError(f"its rows are no grid: there is none for x = {first[k]:.12g}, y = {second[n]:.12g}")
    if len(z) != values.size:
        raise ValueError("its rows have a pair of x and y twice; keep one")
    return [first, second, values]
