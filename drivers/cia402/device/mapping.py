"""The mapping and the timing of the PDOs of the emulated drive: objects 1400h to 1BFFh (CiA 301, 7.5.2.35 to 38).

A mapping is changed in the order of the standard: PDO invalid, number of objects 0, objects, number, PDO valid.
"""

from __future__ import annotations

from cosim.plugins.drivers.cia402 import sdo
from cosim.plugins.drivers.cia402.device import objects
from cosim.plugins.drivers.cia402.device.node import Node
from cosim.plugins.drivers.cia402.device.objects import INVALID, NO_REMOTE, OBJECTS

_RECEIVE, _RECEIVE_MAPPING, _TRANSMIT, _TRANSMIT_MAPPING = 0x14, 0x16, 0x18, 0x1A
_GROUPS = frozenset((_RECEIVE, _RECEIVE_MAPPING, _TRANSMIT, _TRANSMIT_MAPPING))
_RESERVED_TYPES = {_RECEIVE: range(241, 254), _TRANSMIT: range(241, 252)}
_EXTENDED = 1 << 29
# identifiers that CiA 301 reserves for other services
_RESTRICTED = (
    range(0x000, 0x080),
    range(0x101, 0x181),
    range(0x581, 0x600),
    range(0x601, 0x680),
    range(0x6E0, 0x700),
    range(0x701, 0x800),
)


def configures(key: int) -> bool:
    return key >> 16 in _GROUPS


def configure(node: Node, key: int, value: int) -> None:
    """Write one of the objects that configure a PDO. Raises sdo.Aborted."""
    group, number, sub = key >> 16, key >> 8 & 0xFF, key & 0xFF
    if node.settings.fixed_maps and group in (_RECEIVE_MAPPING, _TRANSMIT_MAPPING):
        raise sdo.Aborted(sdo.READ_ONLY)
    if group in (_RECEIVE, _TRANSMIT):
        _check_communication(node, key, group, sub, value)
    else:
        _check_mapping(node, key, group, number, sub, value)
    node.values[key] = value
    rebuild(node)


def _check_communication(node: Node, key: int, group: int, sub: int, value: int) -> None:
    if sub == 1:
        if value & _EXTENDED or any(value & 0x1FFFFFFF in ids for ids in _RESTRICTED):
            raise sdo.Aborted(sdo.BAD_VALUE)
        before = node.value(key)
        if not (before | value) & INVALID and (before ^ value) & 0x1FFFFFFF:
            raise sdo.Aborted(sdo.WRONG_STATE)
    elif sub == 2 and value in _RESERVED_TYPES[group]:
        raise sdo.Aborted(sdo.BAD_VALUE)


def _check_mapping(node: Node, key: int, group: int, number: int, sub: int, value: int) -> None:
    cob_id = (group - 2 << 16) + (number << 8) + 1
    if not node.value(cob_id) & INVALID:
        raise sdo.Aborted(sdo.WRONG_STATE)
    direction = "r" if group == _RECEIVE_MAPPING else "t"
    if sub == 0:
        mapped = [node.value(key + 1 + k) for k in range(value)]
        if sum(_mapped_bits(node, entry, direction) for entry in mapped) > 64:
            raise sdo.Aborted(sdo.MAPPING_TOO_LONG)
    elif node.value(key - sub):
        raise sdo.Aborted(sdo.WRONG_STATE)
    elif value:
        _mapped_bits(node, value, direction)


def _mapped_bits(node: Node, mapped: int, direction: str) -> int:
    """The bits of a mapped object. Raises sdo.Aborted if it cannot be mapped."""
    key, bits = node.table_key(mapped >> 8), mapped & 0xFF
    entry = OBJECTS.get(key)
    if entry is None and key >> 8 not in objects.INDICES:
        raise sdo.Aborted(sdo.NO_OBJECT)
    if entry is None or direction not in entry.mapping or bits != objects.width(key):
        raise sdo.Aborted(sdo.NO_MAPPING)
    return bits


def rebuild(node: Node) -> None:
    """Update the PDOs from the objects."""
    receive_pdos, transmit_pdos = {}, []
    for number in objects.PDOS:
        offset = number << 8
        cob_id = node.value(0x140001 + offset)
        if not cob_id & INVALID:
            receive_pdos[cob_id & 0x7FF] = (number, node.value(0x140002 + offset), _keys(node, 0x160000 + offset))
        cob_id = node.value(0x180001 + offset)
        if not cob_id & INVALID:
            keys = _keys(node, 0x1A0000 + offset)
            remote = not cob_id & NO_REMOTE
            transmit_pdos.append((number, cob_id & 0x7FF, node.value(0x180002 + offset), keys, remote))
    node.receive_pdos, node.transmit_pdos = receive_pdos, tuple(transmit_pdos)
    node.pending = [None] * len(objects.PDOS)
    node.sent = [None] * len(objects.PDOS)


def _keys(node: Node, key: int) -> tuple[int, ...]:
    return tuple(node.table_key(node.value(key + 1 + k) >> 8) for k in range(node.value(key)))
