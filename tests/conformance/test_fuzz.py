"""Items of nonsense, and of real traffic with something changed, into every codec and every emulated drive.

COSIM_FUZZ sets how many items there are for each family, for its codecs and for its emulator.
"""

import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import pytest

from cosim.core.errors import InputError, RunError
from cosim.plugins.drivers.transport import CanFrame
from tests.kit.clock import MS

from .families import Case, adapters, stepped_cases, unwired
from .wires import Desk, Tape, distinct, mutants, nonsense, through_checksums

COUNT = int(os.environ.get("COSIM_FUZZ", 10_000))
SHARDS = max(1, COUNT // 250_000)
BURST = 50  # items between two steps of the physics
# to drives without a state "off" every frame with the identifier of a setpoint is one
ALWAYS_ON = {("vesc", "virtual")}
# those in machine code are in test_fuzz_cycles.py
APART = stepped_cases()
apart = pytest.mark.parametrize("case", APART, ids=str)
shards = pytest.mark.parametrize("shard", range(SHARDS))


def share(case: Case, of: int = SHARDS) -> int:
    """Items of one shard."""
    return COUNT // (of * sum(other.family == case.family for other in APART))


@pytest.fixture
def desk(case, tmp_path, monkeypatch):
    return Desk(case, tmp_path, monkeypatch)


@pytest.fixture
def traffic(desk) -> tuple[list[Any], list[Any]]:
    """(items of the host, items of the drives), each one once."""
    with desk.recorded() as (sent, answered):
        desk.client()
    return distinct(sent), distinct(answered)


# --- codecs -----------------------------------------------------------------------------------------------


def decoders(family: str) -> dict[str, list[Callable[[Any], object]]]:
    """Functions and incremental decoders (`feed`) of all modules of a family, and of the transport that they use,
    that take an item, by the annotation of the parameter; of text in its codecs. Without encoders."""
    found: dict[str, list[Callable[[Any], object]]] = {"bytes": [], "CanFrame": [], "str": []}
    for info in pkgutil.iter_modules(importlib.import_module(f"cosim.plugins.drivers.{family}").__path__):
        module = importlib.import_module(f"cosim.plugins.drivers.{family}.{info.name}")
        for name, part in list(vars(module).items()):
            home = getattr(part, "__module__", None) or ""
            used = home == module.__name__ or home.startswith("cosim.plugins.drivers.transport.")
            if name.startswith("_") or not used or not callable(part):
                continue
            needed = [p for p in inspect.signature(part).parameters.values() if p.default is p.empty]
            if inspect.isclass(part):
                if "feed" in vars(part) and not needed:
                    found["bytes"].append(part().feed)
                continue
            kinds = [str(p.annotation) for p in needed]
            made = [_made(vars(sys.modules[home]).get(kind)) for kind in kinds[1:]]
            if not kinds or kinds[0] not in found or None in made:
                continue
            if part.__annotations__.get("return") in ("bytes", "CanFrame", "str", "None", "int"):
                continue
            if kinds[0] != "str" or "codec" in info.name:
                found[kinds[0]].append(lambda item, part=part, made=made: part(item, *made))
    return found


def _made(kind: Any) -> Any:
    """A named tuple of numbers; None for other types."""
    return kind(*[1.0] * len(kind._fields)) if hasattr(kind, "_fields") else None


@apart
@shards
def test_no_bytes_make_a_decoder_fail(case, shard, traffic):
    sent, answered = traffic
    each, found, declared = share(case) // 4, decoders(case.family), unwired(case).interpreted
    if declared is not None:
        found["CanFrame"].append(declared.take)
    of_frames, of_bytes, of_text = found["CanFrame"], found["bytes"], found["str"]
    assert of_frames or of_bytes, f"no decoder found in drivers/{case.family}"
    items = chain(
        nonsense(4 * shard, sent, each),
        mutants(4 * shard + 1, answered, each),
        nonsense(4 * shard + 2, answered, each),
        mutants(4 * shard + 3, sent, each),
    )
    seen = 0
    for item in through_checksums(case, items):
        seen, data = seen + 1, item
        if isinstance(item, CanFrame):
            data = item.data
            for decode in of_frames:
                decode(item)
        for decode in of_bytes:
            decode(data)
        if of_text and not isinstance(item, CanFrame):
            text = data.decode("latin-1")
            for decode in of_text:
                decode(text)
    assert seen == 4 * each


CHECKED = [case for case in (*APART, *adapters()) if hasattr(case.module, "with_valid_checksum") and case.line == "pty"]


@pytest.mark.parametrize("case", CHECKED, ids=str)
def test_the_checksum_that_a_family_offers_is_that_of_its_lines(case, desk, traffic):
    """Of real traffic it changes nothing, and it makes spoilt traffic valid."""
    tape = Tape()
    items = traffic[0]
    if hasattr(desk.ends[0], "serial"):  # frames as lines
        desk.ends[0].serial, desk.ends[0].checksums = tape, True
        for item in items:
            desk.ends[0].send(item, 0)
        items = list(tape.went)
    assert [case.module.with_valid_checksum(item) for item in items] == items
    spoilt = [item[:-1] + bytes((item[-1] ^ 1,)) for item in items if not item.endswith(b"\n")]
    spoilt = spoilt or [item.replace(b"*", b"*1", 1) for item in items if b"*" in item]
    assert spoilt and not set(spoilt) & set(items)
    assert {case.module.with_valid_checksum(item) for item in spoilt} <= set(items)


@pytest.mark.parametrize("case", adapters(), ids=str)
def test_an_adapter_for_frames_takes_any_bytes_from_either_side(case, desk, traffic):
    tapes = Tape(), Tape()
    for end, tape, items in zip(desk.ends, tapes, traffic, strict=True):
        end.serial = tape
        for item in items:
            end.send(item, 0)
    words = [list(tape.went) for tape in tapes]
    for end, tape, lines in zip(desk.ends, tapes, words[::-1], strict=True):
        spoilt = chain(mutants(11, lines, COUNT // 10), nonsense(12, lines, COUNT // 50), [b"\r\n"])
        for chunk in through_checksums(case, spoilt):
            tape.came.append(chunk)
            assert all(isinstance(item, CanFrame) for item in iter(lambda end=end: end.receive(0), None))
        tape.came.extend(lines)  # to checksums it may have been set to keep
        frames = list(iter(lambda end=end: end.receive(0), None))
        assert frames or end.checksums


@apart
def test_a_driver_reads_on_whatever_comes(case, desk, traffic):
    desk.driver.open()
    desk.driver.enable("effort")
    desk.cycle(3, effort=0.05)
    answered = traffic[1]
    spoilt = chain(mutants(1, answered, 2000), nonsense(2, answered, 2000), mutants(3, answered, 2000, address=False))
    for item in through_checksums(case, spoilt):
        desk.wire.queue.append(item)
        if len(desk.wire.queue) > 20:
            try:
                desk.driver.read(desk.out, desk.wire.t_ns + MS)
            except RunError as error:
                assert "reports no number as its position or velocity; check its encoder" in str(error)
            assert desk.out.position.shape == (2,)
    desk.driver.close()
    desk.emulator.reset(desk.wire.t_ns)
    desk.wire.step()
    desk.client()


# --- drives -----------------------------------------------------------------------------------------------


def storm(desk: Desk, items: Iterator[Any], seen: Callable[[], object]) -> int:
    """Feed all items to the emulator while time advances; `seen` is called at every step."""
    handle, process, count, t_ns = desk.emulator.handle, desk.emulator.process, 0, desk.wire.t_ns
    for count, item in enumerate(items, 1):
        answers = handle(item, t_ns)
        if count % BURST == 0:
            assert isinstance(answers, list)
            t_ns += MS
            process(t_ns)
            seen()
    desk.wire.t_ns = t_ns
    return count


@apart
@shards
def test_nonsense_moves_no_motor_and_leaves_drives_as_they_were(case, shard, desk, traffic):
    if (case.family, case.line) in ALWAYS_ON:
        pytest.skip(f"{case}: any frame with the identifier of a setpoint is a valid one")

    def still():
        assert not any(motor.requested for motor in desk.motors)

    count = share(case) // 2
    assert storm(desk, nonsense(100 + shard, traffic[0], count), still) == count
    desk.emulator.reset(desk.wire.t_ns)
    desk.wire.step()
    desk.client()


@apart
@shards
def test_changed_traffic_moves_no_motor_beyond_its_bounds_and_stop_stops(case, shard, desk, traffic):
    def bounded():
        for motor in desk.motors:
            assert np.isfinite(motor.requested) and abs(motor.requested) <= motor.max_effort

    count, rounds = share(case) // 2, 5
    for k in range(rounds):
        items = mutants(200 + shard * rounds + k, traffic[0], count // rounds)
        assert storm(desk, through_checksums(case, items), bounded) == count // rounds
        desk.wire.is_open = True
        desk.driver.stop()
        for _ in range(2000):
            desk.wire.step()
        assert not any(motor.requested for motor in desk.motors)
        desk.emulator.reset(desk.wire.t_ns)
        desk.wire.step()
    # with valid checksums, or where there are none, limits in the memory of the drives may have been changed, which is
    # refused
    changed = hasattr(case.module, "with_valid_checksum") or case.family == "mit"
    with suppress(*[InputError] if changed else []):
        desk.client()


@pytest.mark.parametrize("case", [case for case in APART if case.line == "virtual"], ids=str)
def test_commands_to_one_drive_do_not_move_the_other(case, tmp_path, monkeypatch):
    (tmp_path / "alone").mkdir()
    with monkeypatch.context() as patch:
        alone = Desk(case, tmp_path / "alone", patch, joints=1)
        with alone.recorded() as (sent, _):
            alone.client()
    desk = Desk(case, tmp_path, monkeypatch)

    def still():
        assert desk.motors[1].requested == 0.0

    storm(desk, mutants(300, distinct(sent), COUNT // 10, address=False), still)
    desk.emulator.reset(desk.wire.t_ns)
    desk.wire.step()
    desk.client()
