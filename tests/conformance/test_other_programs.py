"""On a bus that others can reach, a driver is not opened while another program commands its drives."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cosim.core.errors import InputError
from cosim.plugins.drivers.transport import CanBus, CanFrame, CanParams, now
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from cosim.rig.wiring.drivers import cycle_traffic, own_items

from .families import Case, addresses, cases, rig, section, write_rig
from .marks import over

ON_MULTICAST = over(*(case for case in cases() if case.line == "udp_multicast" and not case.compiled))


@pytest.fixture
def opened(case: Case, tmp_path):
    """(the program's end of the connection with its reserved items, the driver's section, its context)."""
    spec = read_rig(write_rig(tmp_path / "rig.yaml", rig(section(case, tmp_path), addresses(case))))
    driver = spec.drivers[0]
    context = Rig(spec, interpret=True).contexts[driver.name]
    host = driver.family.host(driver.plugin.params, context)
    host.reserve(own_items(driver, context))
    yield host, driver, context
    host.close()


@contextmanager
def repeated(params: CanParams, frame: CanFrame) -> Iterator[None]:
    """Another node sends a frame every 2 ms."""
    node, done = CanBus(params, lambda *keys: None, "device"), threading.Event()
    node.open()

    def send() -> None:
        while not done.wait(0.002):
            node.send(frame, now() + 1_000_000_000)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        node.close()


@ON_MULTICAST
def test_a_command_of_another_program_is_detected_before_anything_is_sent(opened):
    host, driver, context = opened
    frames = {(frame.id, frame.remote): frame for frame in own_items(driver, context)}
    for frame in frames.values():
        with repeated(driver.plugin.params.bus, frame), pytest.raises(InputError) as caught:
            host.open()
        what = f"another program commands the drives of {host.name}: its frame {frame.id:#x} came before anything was"
        assert what + " sent; end it: two programs must not command the same bus" in str(caught.value)
        assert host.meter.items_out == 0


@ON_MULTICAST
def test_answers_of_drives_do_not_count_as_commands(opened):
    host, driver, context = opened
    answers = {(frame.id, frame.remote): frame for frame in cycle_traffic(driver, context).back}
    for frame in answers.values():
        with repeated(driver.plugin.params.bus, frame):
            host.open()
        host.close()
