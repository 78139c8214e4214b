"""Who may open a web server of this program: a pure rule on what a request states, for pages and WebSockets alike.

A loopback address authenticates nobody: every page in a browser of this machine, and all of its users, can connect.
So a request needs the token of the server, which is random and printed with its address. A page of another origin must
not get further even with the token, so `Origin` must be the server's own, or an allowed one. `Host` must name this
machine: a name that an attacker has directed to 127.0.0.1 (DNS rebinding) would make the page of the attacker one of
the same origin.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from cosim.core.errors import InputError

TOKEN = "token"  # the field of the query
HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s?#]*")
SCHEMES = ("http://", "https://")  # of pages: a proxy in front of the server may encrypt


class HandshakeRequest(NamedTuple):
    """What decides on a request to open a page or a WebSocket. path: with its query; hosts, origins: all headers of
    this name; local: address of the socket where it arrived."""

    path: str
    hosts: Sequence[str]
    origins: Sequence[str]
    local: str


def new_token() -> str:
    """192 random bits, in characters that a URL may have."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Access:
    """The rule by which a web server admits requests: names of its machine, origins and a token.

    hosts: names of this machine in `Host`, beside its loopback names and the address where a request arrives; origins:
    of pages of others that may connect.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    token: str = field(default_factory=new_token, repr=False)

    def refusal(self, request: HandshakeRequest) -> str:
        """Why it is refused, for the user; empty where it is not. Nothing of the request is repeated."""
        if not self._names_this_machine(request):
            return "this name of the machine is not allowed; start with --allow-host NAME to allow it"
        if not self._origin_allowed(request):
            return "a page of another origin may not connect"
        if not self._has_token(request.path):
            return "the token is missing or wrong; open the whole address that the command has printed"
        return ""

    def _names_this_machine(self, request: HandshakeRequest) -> bool:
        if len(request.hosts) != 1 or (found := HOST.fullmatch(request.hosts[0].lower())) is None:
            return False
        name = found["name"]
        if name in self.hosts:
            return True
        local = ip_address(request.local.partition("%")[0])
        if name == "localhost":
            return local.is_loopback
        try:
            return ip_address(name.strip("[]")) == local  # a number needs no name server
        except ValueError:
            return False

    def _origin_allowed(self, request: HandshakeRequest) -> bool:
        """Programs that are no browser send none."""
        if not request.origins:
            return True
        own = {scheme + request.hosts[0].lower() for scheme in SCHEMES}
        return len(request.origins) == 1 and request.origins[0].lower() in own | self.origins

    def _has_token(self, path: str) -> bool:
        given = parse_qs(urlsplit(path).query).get(TOKEN, [])
        return len(given) == 1 and secrets.compare_digest(given[0].encode(), self.token.encode())


def access_of(hosts: Iterable[str], origins: Iterable[str] = ()) -> Access:
    """With a new token. hosts: of `--allow-host`; origins: of pages, as browsers state them. Raises InputError."""
    for host in hosts:
        found = HOST.fullmatch(host.lower())
        if found is None or found["name"] != host.lower():
            raise InputError(f"'{host}' is no name of a machine; give one such as robot.example.org", "--allow-host")
    for origin in origins:
        if not ORIGIN.fullmatch(origin.lower()):
            raise InputError(f"'{origin}' is no origin; give one such as https://example.org", "--allow-origin")
    return Access(frozenset(map(str.lower, hosts)), frozenset(map(str.lower, origins)))
