"""Search for template drives: every number is requested for its identity."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.plugins.drivers.common.search import FoundDrive, Question, Search
from cosim.plugins.drivers.template import codec
from cosim.plugins.drivers.transport import CanFrame, CanParams, SerialParams

ORDER = 2  # its requests have identifiers that other protocols use for commands
NODES = range(1, 128)
ANSWER_TIME = 0.1  # s


def search(connection: CanParams | SerialParams) -> Search:
    answers = yield Question(tuple(codec.encode(codec.REQUEST, node, codec.WHO) for node in NODES), ANSWER_TIME)
    return [_found(node, identity) for node, identity in sorted(_identities(answers))]


def commands() -> Iterator[CanFrame]:
    return (codec.encode(codec.COMMAND, node, 0, 0, 0, 0.0) for node in NODES)


def _identities(answers: list[CanFrame]) -> set[tuple[int, tuple]]:
    decoded = [(frame.id & 0x7F, codec.decode(frame)) for frame in answers]
    return {(node, message[1]) for node, message in decoded if message is not None and message[0] == codec.IDENTITY}


def _found(node: int, identity: tuple) -> FoundDrive:
    version, _, effort = identity
    listens = frozenset((codec.COMMAND + node, codec.REQUEST + node))
    return FoundDrive({"id": node}, f"protocol {version}, effort limit {effort:.4g} N·m", listens)
