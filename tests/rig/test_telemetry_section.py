"""The section `telemetry`: an endpoint in the network needs a permission and a key."""

from pathlib import Path

import pytest


@pytest.mark.parametrize("endpoint", ["tcp://*:9872", "tcp://0.0.0.0:9872", "tcp://eth0:1"])
def test_endpoints_in_the_network_need_a_permission_and_a_key(rigs, said, endpoint):
    def rig(more=""):
        return f"{rigs.mechanism}telemetry: {{publish: '{endpoint}'{more}}}\n"

    Path("rig.key").write_text("")
    for more in ("", ", key: rig.key", ", network: yes"):
        said(rigs.mistakes(rig(more)))
    telemetry = rigs.read(rig(", network: yes, key: rig.key")).telemetry
    assert telemetry.key is not None and Path(telemetry.key).samefile("rig.key")


ENDPOINTS = ["foo", "udp://1.2.3.4:5", "tcp://127.0.0.1", "tcp://127.0.0.1:abc", "http://x:1"]


@pytest.mark.parametrize("keys", [*(f"publish: '{endpoint}'" for endpoint in ENDPOINTS), "key: rig.key"])
def test_what_is_no_endpoint_and_no_key(rigs, said, keys):
    said(rigs.mistakes(f"{rigs.mechanism}telemetry: {{{keys}}}\n"))
