"""Keys of sockets: CURVE encryption, and the rules for where it is required.

A key file is a ZeroMQ certificate with both keys of the server, which its owner alone may read; the file beside it with
the suffix `.pub` has the public key. Clients need that file: without it the handshake fails. A socket that takes
commands at an address that all users of this machine can reach has the key of the user, which clients of the same user
find by themselves. It also keeps out pages in a browser: ZeroMQ without a key reads an HTTP request as its first
protocol.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from cosim.core.access.private_folder import private_folder
from cosim.core.errors import InputError
from cosim.core.paths import NotAFile, check_file
from cosim.core.trust.private_cache import OTHERS

PUBLIC = ".pub"
ENDPOINT = re.compile(r"tcp://.+:(\d{1,5}|\*)|(ipc|inproc)://.+")
LOOPBACK = re.compile(r"tcp://(127(\.\d{1,3}){3}|localhost|\[::1\]):.*")
PRIVATE = re.compile(r"ipc://[^@].*|inproc://.+")  # an abstract name, @NAME, has no mode
OWN_KEY = "sockets.key"


def is_local(endpoint: str) -> bool:
    """Whether only programs on this machine can connect to it."""
    return endpoint.startswith(("ipc://", "inproc://")) or LOOPBACK.fullmatch(endpoint) is not None


def is_private(endpoint: str) -> bool:
    """Whether only programs of this user can connect to it: `bind` closes the file of a socket to others."""
    return PRIVATE.fullmatch(endpoint) is not None


def key_of(endpoint: str, key: str | None) -> str | None:
    """The file of the keys for a socket that takes commands there: the given one, or the user's own where others can
    reach it. Raises InputError."""
    return key if key is not None or is_private(endpoint) else str(own_key())


def client_key_of(address: str, key: str | Path | None) -> str | Path | None:
    """The file of the key for a client of such a socket: the given one, or the user's own, if it exists."""
    if key is not None or is_private(address) or not is_local(address):
        return key
    file = private_folder() / OWN_KEY
    return file if file.is_file() else None


def own_key() -> Path:
    """The file of the keys of this user, made where it does not exist. Raises InputError."""
    file = private_folder() / OWN_KEY
    if not file.is_file():
        passing = file.with_name(f"{OWN_KEY}.{os.getpid()}")
        passing.unlink(missing_ok=True)  # of a program that was killed
        _write_new(passing, _both(*_new_pair()), 0o600)
        with suppress(FileExistsError):  # another program was faster
            os.link(passing, file)
        passing.unlink()
    return file


def check_network(endpoint: str, network: bool, key: str | None, section: str) -> None:
    """Raises ValueError for an endpoint in the network that is not allowed, or not encrypted. section: of the rig."""
    if not ENDPOINT.fullmatch(endpoint):
        raise ValueError(f"'{endpoint}' is no endpoint; give one such as tcp://127.0.0.1:9872 or ipc:///tmp/rig")
    if is_local(endpoint):
        return
    if not network:
        local = "use one such as tcp://127.0.0.1:9872 or ipc:///tmp/rig"
        raise ValueError(f"the network can reach this endpoint; {local}, or set {section}.network and {section}.key")
    if key is None:
        raise ValueError(f"the network can reach this endpoint; set {section}.key to a file that `cosim key` wrote")


def create_keys(file: str | Path) -> Path:
    """Write a new key file, and the file for clients, whose path is returned. Raises InputError."""
    if Path(file).is_dir():
        raise InputError("is a folder; give the name of a file in it", str(file))
    secret_file, public_file = Path(file), Path(f"{file}{PUBLIC}")
    public, secret = _new_pair()
    _write_new(secret_file, _both(public, secret), 0o600)
    try:
        _write_new(public_file, f'curve\n    public-key = "{public}"\n', 0o644)
    except InputError:
        secret_file.unlink()  # a key that no client can have
        raise
    return public_file


def _new_pair() -> tuple[str, str]:
    """(public, secret) key."""
    import zmq

    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()


def _both(public: str, secret: str) -> str:
    return f'curve\n    public-key = "{public}"\n    secret-key = "{secret}"\n'


def secure(socket: Any, file: str | Path) -> None:
    """Make a zmq.Socket a CURVE server with this key file; before `bind`. Raises InputError."""
    import zmq

    public, secret = _read(file)
    if secret is None:
        raise InputError(f"has no secret key; give the file without {PUBLIC}", str(file))
    if mode := Path(file).stat().st_mode & OTHERS:
        raise InputError(f"others can read the secret key (mode {mode:03o}); chmod 600 it", str(file))
    socket.setsockopt(zmq.CURVE_SERVER, True)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, public)
    socket.setsockopt(zmq.CURVE_SECRETKEY, secret)


def secure_client(socket: Any, file: str | Path) -> None:
    """Make a zmq.Socket a client of the server of this file (`.pub`); before `connect`. Raises InputError."""
    import zmq

    server, _ = _read(file)
    public, secret = zmq.curve_keypair()
    socket.setsockopt(zmq.CURVE_SERVERKEY, server)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, public)
    socket.setsockopt(zmq.CURVE_SECRETKEY, secret)


def _read(file: str | Path) -> tuple[bytes, bytes | None]:
    """(public, secret) key. Raises InputError."""
    from zmq.auth import load_certificate

    try:
        check_file(file)
        public, secret = load_certificate(file)
    except NotAFile as cause:
        raise InputError(f"cannot be read: {cause.strerror}", str(file)) from None
    except OSError as cause:
        raise InputError("there is no such key file; write one with `cosim key`", str(file)) from cause
    except ValueError as cause:
        raise InputError("is no key file; write one with `cosim key`", str(file)) from cause
    if any(len(key) != 40 for key in (public, secret) if key is not None):
        raise InputError("has a key of a wrong length; write a new file with `cosim key`", str(file))
    return public, secret


def _write_new(file: Path, text: str, mode: int) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError as cause:
        raise InputError("exists already; a key is never overwritten, give another name", str(file)) from cause
    except OSError as cause:
        raise InputError(f"cannot be written: {cause.strerror}; give another place", str(file)) from cause
    with os.fdopen(descriptor, "w") as opened:
        opened.write(text)
        os.fchmod(opened.fileno(), mode)  # whatever the umask is
