"""One program per bus of a machine."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cosim.drivers.transport import CanParams, bus_lock, device_link, host_link
from cosim.errors import InputError

from .conftest import place

GROUP = "239.74.16.3"
BUS = CanParams("udp_multicast", GROUP)
OTHER = f"""
import sys
from cosim.drivers.transport import CanParams, bus_lock, {{end}}_link
bus_lock.NAMESPACE = {{namespace!r}}
link = {{end}}_link(CanParams("udp_multicast", "{GROUP}"), lambda *keys: None)
link.open()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Another program that has opened this end of the bus."""
    script = OTHER.format(end=request.param, namespace=bus_lock.NAMESPACE)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as process:
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        yield process
        process.kill()


@pytest.mark.parametrize(("other", "link"), [("host", host_link), ("device", device_link)], indirect=["other"])
def test_a_second_program_on_a_bus_is_refused_until_the_first_has_ended(other, link):
    second = link(BUS, place)
    with pytest.raises(InputError) as caught:
        second.open()
    command = f"{' '.join(f'{Path(other.args[0]).name} -c {other.args[2]}'.split())[:80]}"
    assert str(caught.value) == (
        f"rig.yaml:7 channel: the bus udp_multicast {GROUP} is in use by process {other.pid} ({command}); end it: two"
        " programs must not command the same bus"
    )
    other.kill()
    other.wait()
    second.open()
    second.close()


@pytest.mark.parametrize("other", ["device"], indirect=True)
def test_the_other_end_is_free(other):
    link = host_link(BUS, place)
    link.open()
    link.close()


def test_connections_of_one_program_share_a_bus_and_the_last_one_releases_it():
    first, second = host_link(BUS, place), host_link(BUS, place)
    first.open()
    second.open()
    second.close()
    assert len(bus_lock._sockets) == 1
    first.close()
    first.close()  # without effect
    assert not bus_lock._sockets


def test_a_bus_that_cannot_be_opened_is_not_locked():
    with pytest.raises(InputError):
        host_link(CanParams("socketcan", "nowhere7"), place).open()
    assert not bus_lock._sockets


def test_a_holder_that_ends_meanwhile():
    assert bus_lock._holder("nobody") == "another process"
