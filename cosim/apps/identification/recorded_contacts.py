"""Measured forces of contacts in a recording, such as of force plates under the feet of a robot.

They are known external forces in the equations of motion. A force and the point where it acts are a wrench about the
origin of the ground, which is linear in what a plate measures: means and filters of it stay true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core.errors import InputError
from cosim.core.tables.log import MeasuredColumn
from cosim.core.tables.table import FileTable
from cosim.core.types import Array
from cosim.rig.rig import Rig

FORCE, POINT, MOMENT = "force", "point", "moment"  # signals of a contact, with _x, _y and _z


def contacts_of(rig: Rig) -> list[str]:
    """Their names."""
    return [contact.name for contact in rig.plant.contacts.contacts.members]


@dataclass(frozen=True)
class ForceColumns:
    """The columns of c contacts in a table. with_moment: of each whether it has a moment beside its force."""

    columns: list[MeasuredColumn]
    with_moment: tuple[bool, ...]

    @staticmethod
    def of(table: FileTable, contacts: Sequence[str]) -> ForceColumns:
        """`<contact>/force_x` … on its first shape and `<contact>/point_x` … where it acts, in ground axes;
        `<contact>/moment_x` … about this point, where the table has it. Raises InputError for one without its force."""
        found, moments = list[MeasuredColumn](), list[bool]()
        for contact in contacts:
            moments.append(f"{contact}/{MOMENT}_x" in table.names)
            for signal in signals_of(moments[-1]):
                if (name := f"{contact}/{signal}") not in table.names:
                    what = (
                        f"contact '{contact}' has no column '{name}', and without its force the numbers would be wrong"
                    )
                    fix = (
                        f"record {contact}/force_x, _y, _z and {contact}/point_x, _y, _z, or use --method output-error"
                    )
                    raise InputError(
                        f"{what}; {fix}, or leave mechanism.contacts out where nothing touched", str(table.path)
                    )
                found.append(MeasuredColumn(contact, signal, table.index(name), "rad"))
        return ForceColumns(found, tuple(moments))

    def wrenches(self, values: Array) -> Array:
        """(k, 6 c): force [N] and moment about the origin of the ground [N m] of each contact, from the columns."""
        found, first = list[Array](), 0
        for moment in self.with_moment:
            count = 9 if moment else 6
            force, point, free = np.split(values[:, first : first + count], [3, 6], axis=1)
            found += [force, np.cross(point, force) + (free if moment else 0.0)]
            first += count
        return np.hstack([np.zeros((len(values), 0)), *found])


def signals_of(moment: bool) -> Iterator[str]:
    """Of a contact, as its columns follow one another."""
    for quantity in (FORCE, POINT, MOMENT)[: 3 if moment else 2]:
        yield from (f"{quantity}_{axis}" for axis in "xyz")
