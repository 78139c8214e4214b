"""Frames of every family of drives, as they go over its line in each cycle, and what makes and reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

import numpy as np

Call = Callable[[], object]
Codec = tuple[str, Call, Call]  # what, encode, decode


def moteus_codecs() -> Iterator[Codec]:
    codec, text = (import_module(f"cosim.drivers.moteus.{name}") for name in ("codec", "fdcanusb"))
    frame = import_module("cosim.drivers.transport").CanFrame
    tail = codec.command_tail(0.1, integral=False)
    answer = codec.encode_feedback(codec.Feedback(10, 1.0, -2.0, 0.3, 24.0, 31.0, 0))
    line = text.received_line(frame(0x100, answer, False, True, True))
    command = frame(0x8001, codec.encode_command(tail, 1.0, 2.0, 0.1, 1.0, 1.0, 3.0), True, True, True)
    yield (
        "moteus CAN FD",
        partial(codec.encode_command, tail, 1.0, 2.0, 0.1, 1.0, 1.0, 3.0),
        partial(codec.decode_feedback, answer),
    )
    yield "moteus fdcanusb", partial(text.send_line, command), partial(text.parse_received, line)


def odrive_codecs() -> Iterator[Codec]:
    can, text = (import_module(f"cosim.drivers.odrive.{name}_codec") for name in ("can", "ascii"))
    answer = can.encode(3, can.GET_ENCODER_ESTIMATES, 1.0, -2.0)
    line = text.line("0.159155 -0.318310", True, "")
    yield "ODrive CAN", partial(can.encode, 3, can.SET_INPUT_TORQUE, 0.3), partial(can.decode, answer)
    yield (
        "ODrive ASCII",
        lambda: text.line(text.torque(0, -1.23456789), True),
        lambda: text.feedback(text.unwrap(line).text),
    )


def cia402_codecs() -> Iterator[Codec]:
    codec = import_module("cosim.drivers.cia402.codec")
    step = codec.Step(1e-4, 1e-4, 1e-3)
    answer = codec.status_answer(3, codec.Status(0x1237, 10, 1.0), step).data
    yield (
        "CiA 402",
        partial(codec.effort_command, 3, 0x0F, 0.3, step),
        partial(codec.decode_status, answer, step),
    )


def dynamixel_codecs(n: int) -> Iterator[Codec]:
    codec, layout = (import_module(f"cosim.drivers.dynamixel.{name}") for name in ("codec", "cycle"))
    ids = range(1, n + 1)
    goals, counts = layout.Goals(ids, "effort"), np.arange(float(n))
    answer = codec.status(1, 0, bytes(layout.SIZE))
    chain = codec.chained([codec.Block(0, id, bytes(layout.SIZE)) for id in ids], len(ids) * layout.STATE.itemsize)
    decoder = codec.Decoder()
    yield "Dynamixel, one drive", partial(codec.write, 1, 102, b"\x10\x00"), partial(decoder.feed, answer)
    yield f"Dynamixel, {n} drives in one packet", partial(goals.packet, counts), partial(decoder.feed, chain)


def samples(n: int) -> Iterator[Codec]:
    """Of all families; n: drives on a line that answers in one packet."""
    yield from moteus_codecs()
    yield from odrive_codecs()
    yield from cia402_codecs()
    yield from dynamixel_codecs(n)
