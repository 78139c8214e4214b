"""Frames between a run and its recorder process."""

import os

from cosim.output.frame_protocol import (
    FrameDecoder,
    FrameKind,
    decode_fields,
    decode_values,
    encode_fields,
    encode_frame,
)
from cosim.output.sink_process import serve


def test_frames_are_decoded_wherever_the_stream_is_split():
    sent = [(FrameKind.START, b"abc"), (FrameKind.END, b""), (FrameKind.VALUES, bytes(range(256)))]
    data = b"".join(encode_frame(kind, body[:2], body[2:]) for kind, body in sent)
    for size in (1, 5, 9, 100, len(data)):
        frames = FrameDecoder()
        pieces = [data[i : i + size] for i in range(0, len(data), size)]
        assert [found for piece in pieces for found in frames.feed(piece)] == sent
    assert list(FrameDecoder().feed(data[:-1])) == sent[:-1]


def test_a_batch_without_ticks_is_a_batch():
    t_ns, values = decode_values(b"", 3)
    assert t_ns.shape == (0,) and values.shape == (0, 3)


def test_the_sink_process_ends_at_the_end_of_its_input():
    source, end = os.pipe()
    answers, received = os.pipe()
    os.close(end)
    try:
        serve(source, received)
        assert list(FrameDecoder().feed(os.read(answers, 100))) == [(FrameKind.DONE, b"")]
    finally:
        for fd in (source, answers, received):
            os.close(fd)


def test_fields_are_decoded_as_they_were_encoded():
    words = (1, "a\udcff", None, (b"\xff", 2.5))
    assert decode_fields(encode_fields(words)) == words
