"""A drive of another family at an address that does not answer: it is asked in the languages of the other families.

A family whose drives can be asked has in its module `scan.py`

    ask(connection, address)     items that a drive with this address answers in any state; none for an address that its
                                 family does not have. They change nothing, and no drive takes them for a command
    answers(items, address)      whether what came is of such a drive
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from typing import Any, Protocol, get_args, get_type_hints, runtime_checkable

import numpy as np

from cosim.core.driver_contract import BusItem, Connection, DriverContext
from cosim.core.errors import CosimError, SourceLocation
from cosim.core.types import Limits
from cosim.rig.reading.driver_family import DriverFamily, families, hook
from cosim.rig.sections.drivers import DriverSpec

ASK_NS = 80_000_000  # for the answer to one family's question
MAX_ITEMS = 2_000  # so that a babbling node cannot block the search
CONTEXT_PERIOD = 0.01  # s
NOTHING = Limits(*(np.zeros(0) for _ in range(4)))


@runtime_checkable
class Filtering(Protocol):
    """A connection that receives chosen identifiers only."""

    def accept(self, ids: Iterable[int] | None) -> None: ...


def bare_link(module: DriverFamily, params: Any, place: Any) -> Connection:
    """The program's end of a connection, without drives, which receives everything; not yet open."""
    link = module.host(params, DriverContext((), (), NOTHING, CONTEXT_PERIOD, "effort", place))
    if isinstance(link, Filtering):
        link.accept(None)
    return link


def gather(link: Connection, time_ns: int, answers: list[BusItem], limit: int) -> None:
    """Append the items that come in this time, until there are `limit`."""
    until = link.now() + time_ns
    while len(answers) < limit and (item := link.receive(until)) is not None:
        answers.append(item)
        if link.now() > until:
            break


def family_at(spec: DriverSpec, address: int) -> str:
    """The family of the drive that answers at an address on the connection of a driver, which is closed; "" for none.

    Motors stay off. It takes ASK_NS for each family that can be on this kind of connection.
    """
    key = next((key for key in ("bus", "port") if getattr(spec.plugin.params, key, None) is not None), None)
    if key is None:
        return ""
    for name, module in families():
        scan = hook(module, "scan")
        if module is spec.family or scan is None or not hasattr(scan, "ask"):
            continue
        params = _on(module, key, getattr(spec.plugin.params, key))
        if params is not None and _answers(module, params, scan, getattr(params, key), address):
            return name
    return ""


def _answers(module: DriverFamily, params: Any, scan: Any, connection: Any, address: int) -> bool:
    items, received = tuple(scan.ask(connection, address)), []
    if not items:
        return False
    link = bare_link(module, params, partial(_place, connection.name))
    try:
        link.open()
        for item in items:
            link.send(item, link.now() + ASK_NS)
        gather(link, ASK_NS, received, MAX_ITEMS)
    except CosimError:  # the error of the drive that did not answer is reported
        return False
    finally:
        link.close()
    return scan.answers(received, address)


def _on(module: DriverFamily, key: str, section: Any) -> Any:
    """Parameters of a family on this connection; None for a family that cannot be on it."""
    hint = get_type_hints(module.Params).get(key)
    kind = next((each for each in (hint, *get_args(hint)) if hasattr(each, "name")), None)
    if kind is None:
        return None
    try:
        return module.Params(**{key: kind(**{field.name: getattr(section, field.name) for field in fields(section)})})
    except ValueError:
        return None


def _place(name: str, *keys: str | int) -> SourceLocation:
    return SourceLocation(name)


def family_detector(spec: DriverSpec, context: DriverContext) -> Callable[[int], str]:
    """For `DriverGroup`; a connection in memory is not searched."""
    return (lambda address: "") if context.ends is not None else partial(_describe, spec)


def _describe(spec: DriverSpec, address: int) -> str:
    found = family_at(spec, address)
    if not found:
        return ""
    where = f"node {address} on {spec.family.connection_name(spec.plugin.params)}"
    return f"{where} answers as a drive of type '{found}', not '{spec.plugin.name}'; correct 'type' or the address"
