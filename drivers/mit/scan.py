"""Search for drives with the Mini Cheetah protocol: Damiao drives by their registers, all others by leaving motor mode.

Out of motor mode a Mini Cheetah answers to that frame only, and to the one that switches it on. A drive that a killed
program left on is switched off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cosim.plugins.drivers.common.search import FoundDrive, Question, Search
from cosim.plugins.drivers.mit import codec, models
from cosim.plugins.drivers.transport import CanFrame, CanParams, SerialParams

ORDER = 2  # its requests have identifiers that other protocols use for commands
IDS = range(1, 256)
LISTEN_TIME, ANSWER_TIME = 0.15, 0.1  # s: for what is sent in any case; for answers
MODES = (0, 0x100, 0x200, 0x300)  # added to the id: a Damiao drive's commands in its modes
ADD_MODEL = "which does not report its model; add model"


def search(connection: CanParams | SerialParams) -> Search:
    ranges: dict[int, dict[int, float]] = {}
    masters: dict[int, int] = {}
    asked: Iterable[int] = IDS
    for number in codec.LIMITS:
        requests = tuple(codec.register(codec.REGISTERS, id, codec.READ, number) for id in asked)
        for frame in (yield Question(requests, ANSWER_TIME)):
            answer = codec.decode_register(frame)
            if answer is not None and answer[1:3] == (codec.READ, number) and answer[0] in asked:
                ranges.setdefault(answer[0], {})[number] = answer[3]
                masters[answer[0]] = frame.id
        asked = tuple(ranges)
    drives = {id: _damiao(id, masters[id], *found.values()) for id, found in ranges.items() if len(found) == 3}
    others = [id for id in IDS if id not in ranges]
    unasked = {(frame.id, frame.extended) for frame in (yield Question((), LISTEN_TIME))}
    answers = yield Question(tuple(codec.special(id, codec.EXIT) for id in others), ANSWER_TIME)
    for frame in answers:
        id = frame.data[0] if len(frame.data) in (6, 8) and not frame.extended and not frame.remote else 0
        if id in others and (frame.id, False) not in unasked:
            keys = {"id": id, "master": frame.id}
            drives[id] = FoundDrive(keys, f"answers as a Mini Cheetah, {ADD_MODEL}", frozenset({id}))
    return [drives[id] for id in sorted(drives)]


def commands() -> Iterator[CanFrame]:
    return (CanFrame(id + mode, b"") for id in IDS for mode in MODES)


def _damiao(id: int, master: int, *motion: float) -> FoundDrive:
    exact = tuple(float(f"{value:.5g}") for value in motion)
    model = next((name for name, own in models.MODELS.items() if own == exact and name.startswith("DM")), None)
    keys: dict[str, float | str] = {"id": id, "master": master, "model": model or models.CUSTOM}
    if model is None:
        position, velocity, effort = exact
        keys |= {"protocol": "damiao", "max_position": position, "max_velocity": velocity, "max_effort": effort}
    listens = frozenset({codec.REGISTERS, *(id + mode for mode in MODES)})
    return FoundDrive(keys, f"Damiao, ranges {models.named(exact)}", listens)


def ask(connection: CanParams | SerialParams, address: int) -> Iterator[CanFrame]:
    """A register of a Damiao drive; what a Mini Cheetah answers is a command in other protocols."""
    if address in IDS:
        yield codec.register(codec.REGISTERS, address, codec.READ, codec.LIMITS[0])


def answers(items: list[CanFrame], address: int) -> bool:
    found = [answer for frame in items if (answer := codec.decode_register(frame)) is not None]
    return any(answer[:3] == (address, codec.READ, codec.LIMITS[0]) for answer in found)
