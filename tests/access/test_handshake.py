"""The rule for requests to web servers, without a server."""

import pytest

from cosim.core.access.handshake import Access, HandshakeRequest, access_of
from cosim.core.errors import InputError

HERE = "127.0.0.1:8080"
NAME = "this name of the machine is not allowed; start with --allow-host NAME to allow it"
ORIGIN = "a page of another origin may not connect"
TOKEN = "the token is missing or wrong; open the whole address that the command has printed"


def refusal(access: Access, hosts=(HERE,), origins=(), path="", local="127.0.0.1") -> str:
    return access.refusal(HandshakeRequest(path or f"/?token={access.token}", hosts, origins, local))


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1:8080", "127.0.0.1"),
        ("localhost:8080", "127.0.0.1"),
        ("LOCALHOST", "127.0.0.1"),
        ("localhost:9000", "::1"),  # forwarded by ssh from another port
        ("[::1]:8080", "::1"),
        ("192.168.1.5:8080", "192.168.1.5"),
        ("Robot.example.org:8080", "192.168.1.5"),
        ("robot.example.org", "127.0.0.1"),
    ],
)
def test_names_of_this_machine(host, local):
    access = access_of(["ROBOT.example.org"])
    assert refusal(access, [host], [], local=local) == ""
    assert refusal(access, [host], [f"http://{host}"], local=local) == ""
    assert refusal(access, [host], [f"https://{host}"], local=local) == ""


# the second line: not the address at which it arrived, whatever resolvers take for one
OTHERS = ["", "evil.example:8080", "127.0.0.1.evil.example:8080", "localhost.evil.example:8080", "localhost.:8080"]
OTHERS += ["127.0.0.2:8080", "127.1:8080", "2130706433:8080", "192.168.1.5:8080", "[::1]:8080"]
OTHERS += ["127.0.0.1:8080@evil.example", "evil.example/127.0.0.1:8080"]


@pytest.mark.parametrize("hosts", [(), *((name,) for name in OTHERS), (HERE, "evil.example"), (HERE, HERE)])
def test_names_of_other_machines(hosts):
    assert refusal(access_of([]), hosts) == NAME


def test_the_loopback_name_of_a_request_from_the_network():
    assert refusal(access_of([]), ["localhost:8080"], local="192.168.1.5") == NAME


ORIGINS = ["null", "", "http://evil.example", "http://evil.example:8080", "http://127.0.0.1", "http://127.0.0.1:8081"]
ORIGINS += ["http://localhost:8080", "http://127.0.0.1:8080.evil.example", "http://127.0.0.1:8080/", "file://"]
ORIGINS += ["chrome-extension://127.0.0.1:8080"]


@pytest.mark.parametrize("origins", [*((name,) for name in ORIGINS), ("http://127.0.0.1:8080", "http://evil.example")])
def test_pages_of_other_origins(origins):
    assert refusal(access_of([]), origins=origins) == ORIGIN


def test_origins_that_are_allowed():
    access = access_of([], ["https://App.foxglove.dev", "file://"])
    for origin in ("https://app.foxglove.dev", "file://", f"http://{HERE}"):
        assert refusal(access, origins=[origin]) == ""
    assert refusal(access, origins=["https://app.foxglove.dev.evil.example"]) == ORIGIN
    assert refusal(access, origins=["https://app.foxglove.dev"], path="/") == TOKEN


def test_the_token():
    access, other = access_of([]), access_of([])
    assert access.token != other.token and len(access.token) >= 32
    assert refusal(access, path=f"/page?a=b&token={access.token}") == ""
    own = f"token={access.token}"
    wrong = ["", "?token=", "?token", "?token=%ff%fe", "?token=\u00e4", f"?token={other.token}", f"?{own[:-1]}"]
    for query in [*wrong, f"?{own}x", f"?TOKEN={access.token}", f"?{own}&{own}", f"?x={own}", f"#{own}"]:
        assert refusal(access, path=f"/{query}") == TOKEN, query
    assert access.token not in repr(access)


def test_what_is_no_name_and_no_origin():
    for host in ("", "a b", "robot:8080", "http://robot", "*"):
        with pytest.raises(InputError, match=r"is no name of a machine; give one such as robot\.example\.org"):
            access_of([host])
    for origin in ("", "*", "null", "example.org", "https://example.org/x", "https://example.org?"):
        with pytest.raises(InputError, match=r"is no origin; give one such as https://example\.org"):
            access_of([], [origin])
