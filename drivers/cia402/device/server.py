"""The SDO server of the emulated drive: expedited and segmented transfers (CiA 301)."""

from __future__ import annotations

from cosim.plugins.drivers.cia402 import codec, sdo
from cosim.plugins.drivers.cia402.device import access, objects
from cosim.plugins.drivers.cia402.device.node import Node
from cosim.plugins.drivers.transport import CanFrame

MAX_SIZE = 4096  # bytes that a client may announce


def serve(node: Node, frame: bytes) -> None:
    """Answer a request; frames that do not have eight bytes are ignored."""
    if len(frame) != 8:
        return
    command, index, sub = sdo.HEAD.unpack_from(frame)
    key = node.table_key(index << 8 | sub)
    kind = command & sdo.KIND
    if kind in (sdo.SEGMENT_DOWN, sdo.SEGMENT_UP):
        key = node.transfer_key
        index, sub = key >> 8, key & 0xFF
    try:
        answer = _ANSWERS[kind](node, key, frame) if kind in _ANSWERS else None
        if answer is None and kind != sdo.ABORT:
            raise sdo.Aborted(sdo.COMMAND_UNKNOWN)
    except sdo.Aborted as error:
        node.transfer = ""
        answer = sdo.abort(index, sub, error.code)
    if answer is not None:
        if kind in (sdo.UPLOAD, sdo.DOWNLOAD):  # with the requested key
            answer = answer[:1] + frame[1:4] + answer[4:]
        node.send(CanFrame(codec.SDO_ANSWER + node.id, answer))


def _upload(node: Node, key: int, frame: bytes) -> bytes:
    access.find(key)
    data = objects.encode(key, access.read(node, key))
    node.transfer = ""
    if len(data) <= 4:
        return sdo.expedited(sdo.UPLOAD_ANSWER, key >> 8, key & 0xFF, data)
    _begin(node, "up", key, len(data), data)
    return sdo.sized(sdo.UPLOAD_ANSWER, key >> 8, key & 0xFF, len(data))


def _download(node: Node, key: int, frame: bytes) -> bytes:
    node.transfer = ""
    if frame[0] & sdo.EXPEDITED:
        data = sdo.expedited_data(frame)
        if not frame[0] & sdo.SIZED and key in objects.OBJECTS and objects.OBJECTS[key].kind:
            data = data[: objects.width(key) // 8]  # without a size: as long as the object
        access.download(node, key, data)
    else:
        if access.find(key).access in ("ro", "const"):
            raise sdo.Aborted(sdo.READ_ONLY)
        size = int.from_bytes(frame[4:8], "little") if frame[0] & sdo.SIZED else MAX_SIZE
        if size > MAX_SIZE:
            raise sdo.Aborted(sdo.OUT_OF_MEMORY)
        _begin(node, "down", key, size, b"")
    return sdo.plain(sdo.DOWNLOAD_ANSWER, key >> 8, key & 0xFF)


def _begin(node: Node, direction: str, key: int, size: int, data: bytes) -> None:
    node.transfer, node.transfer_key, node.transfer_size = direction, key, size
    node.transfer_data, node.transfer_toggle = data, 0


def _alternate(node: Node, direction: str, frame: bytes) -> int:
    """The toggle bit of this segment. Raises sdo.Aborted."""
    if node.transfer != direction:
        raise sdo.Aborted(sdo.COMMAND_UNKNOWN)
    toggle = node.transfer_toggle
    if frame[0] & sdo.TOGGLE != toggle:
        raise sdo.Aborted(sdo.TOGGLE_WRONG)
    node.transfer_toggle ^= sdo.TOGGLE
    return toggle


def _segment_up(node: Node, key: int, frame: bytes) -> bytes:
    toggle = _alternate(node, "up", frame)
    piece, node.transfer_data = node.transfer_data[:7], node.transfer_data[7:]
    if not node.transfer_data:
        node.transfer = ""
    return sdo.segment(sdo.SEGMENT_UP_ANSWER, toggle, piece, not node.transfer_data)


def _segment_down(node: Node, key: int, frame: bytes) -> bytes:
    toggle = _alternate(node, "down", frame)
    node.transfer_data += sdo.segment_data(frame)
    if len(node.transfer_data) > node.transfer_size:
        raise sdo.Aborted(sdo.TOO_LONG)
    if frame[0] & sdo.LAST:
        node.transfer = ""
        access.download(node, key, node.transfer_data)
    return bytes((sdo.SEGMENT_DOWN_ANSWER | toggle,)) + bytes(7)


def _abort(node: Node, key: int, frame: bytes) -> None:
    node.transfer = ""


_ANSWERS = {
    sdo.SEGMENT_DOWN: _segment_down,
    sdo.DOWNLOAD: _download,
    sdo.UPLOAD: _upload,
    sdo.SEGMENT_UP: _segment_up,
    sdo.ABORT: _abort,
}
