"""Cubic polynomials through the rows of a CSV file that start and end at rest.

The header names the columns, `t` [s] and the joints (SI), in any order; other columns are ignored.
"""

from __future__ import annotations

import csv
import math
from io import TextIOWrapper
from pathlib import Path
from typing import Literal

import numpy as np

from cosim.core.errors import InputError, InputErrors, SourceLocation, did_you_mean, plural
from cosim.core.paths import locate, open_file
from cosim.core.types import Array, param, params
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial

MOST_POSITIONS = 500_000  # of a file; they become constants of the machine code, which is built in about 10 s


@params
class Params:
    file: str = param(doc="CSV file, relative to the rig's folder")
    between: Literal["spline", "monotone", "rest"] = param(
        default="spline",
        doc="spline: continuous acceleration; monotone: never beyond two rows; rest: stops at each row",
    )


def load(params: Params, joints: tuple[str, ...], folder: Path, start: Array) -> PiecewisePolynomial:
    """Raises InputError (or InputErrors, one per wrong cell) for an invalid file."""
    times, positions = read_waypoints(locate(params.file, folder), joints)
    return PiecewisePolynomial.of(times, _coefficients(times, positions, params.between), "waypoints")


def _coefficients(times: Array, positions: Array, between: str) -> Array:
    """(4, m - 1, n): coefficients of the powers 3, 2, 1, 0 of the time since the start of each piece.

    monotone: the slopes of Fritsch and Butland, SIAM J. Sci. Stat. Comput. 5 (1984), 300, and 0 at both ends.
    """
    from scipy.interpolate import CubicHermiteSpline, CubicSpline, PchipInterpolator

    if between == "spline":
        return CubicSpline(times, positions, bc_type="clamped").c
    slopes = np.zeros_like(positions)
    if between == "monotone":
        slopes[1:-1] = PchipInterpolator(times, positions).derivative()(times)[1:-1]
    return CubicHermiteSpline(times, positions, slopes).c


def read_waypoints(path: Path, joints: tuple[str, ...]) -> tuple[Array, Array]:
    """Times (m,) and positions (m, n) in the order of `joints`. Raises InputError, InputErrors."""
    lines = _lines(path)
    if not lines:
        raise InputError(
            "the file is empty; write a header t,<joint>,… and a row per waypoint", SourceLocation(str(path))
        )
    (header_line, header), *rows = lines
    columns = _columns(header, joints, SourceLocation(str(path), header_line))
    most = MOST_POSITIONS // len(joints)
    if len(rows) > most:
        what = (
            f"{len(rows):,} rows for {len(joints)} {plural(len(joints), 'joint')} are too many; keep {most:,} or fewer"
        )
        raise InputError(what, SourceLocation(str(path), rows[most][0]))
    errors: list[InputError] = []
    values = [_numbers(row, header, columns, SourceLocation(str(path), line), errors) for line, row in rows]
    if errors:
        raise InputErrors(errors)
    if len(rows) < 2:
        raise InputError(f"two waypoints or more are needed, got {len(rows)}", SourceLocation(str(path), lines[-1][0]))
    for before, after, (line, _) in zip(values, values[1:], rows[1:], strict=False):
        if after[0] <= before[0]:
            what = f"time must increase, but {after[0]:g} s follows {before[0]:g} s"
            errors.append(InputError(what, SourceLocation(str(path), line, "t")))
    if errors:
        raise InputErrors(errors)
    table = np.array(values)
    return table[:, 0], table[:, 1:]


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """(line number, cells) of the non-blank lines."""
    try:
        with TextIOWrapper(open_file(path), newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            return [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except FileNotFoundError:
        raise InputError("no such file; `file` is relative to the rig's folder", SourceLocation(str(path))) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", SourceLocation(str(path))) from None
    except (csv.Error, UnicodeDecodeError):
        raise InputError("is not a CSV file in UTF-8", SourceLocation(str(path))) from None


def _columns(header: list[str], joints: tuple[str, ...], place: SourceLocation) -> list[int]:
    """Column indices of `t` and the joints."""
    wanted = ("t", *joints)
    errors = [
        InputError(f"no column '{name}'{did_you_mean(name, header)}", place) for name in wanted if name not in header
    ]
    errors += [InputError(f"two columns '{name}'; keep one", place) for name in wanted if header.count(name) > 1]
    if errors:
        raise InputErrors(errors)
    return [header.index(name) for name in wanted]


def _numbers(
    row: list[str], header: list[str], columns: list[int], place: SourceLocation, errors: list[InputError]
) -> list[float]:
    """The numbers of one row at the columns; errors are added to `errors`."""
    if len(row) != len(header):
        errors.append(InputError(f"expected {len(header)} cells as in the header, got {len(row)}", place))
        return []
    numbers = []
    for column in columns:
        try:
            number = float(row[column])
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            key = SourceLocation(place.file, place.line, header[column])
            errors.append(InputError(f"expected a finite number, got '{row[column]}'", key))
        numbers.append(number)
    return numbers
