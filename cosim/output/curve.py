"""Keys for sockets in a network: CURVE encryption, and the rule for where it is required.

A key file is a ZeroMQ certificate with both keys of the server, which its owner alone may read; the file beside it with
the suffix `.pub` has the public key. Clients need that file: without it the handshake fails.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from cosim.errors import InputError

PUBLIC = ".pub"
ENDPOINT = re.compile(r"tcp://.+:(\d{1,5}|\*)|(ipc|inproc)://.+")
LOCAL = ("ipc://", "inproc://", "tcp://127.", "tcp://localhost:", "tcp://[::1]:")


def is_local(endpoint: str) -> bool:
    """Whether only programs on this machine can connect to it."""
    return endpoint.startswith(LOCAL)


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
    import zmq

    if Path(file).is_dir():
        raise InputError("is a folder; give the name of a file in it", str(file))
    secret_file, public_file = Path(file), Path(f"{file}{PUBLIC}")
    public, secret = (key.decode() for key in zmq.curve_keypair())
    _write_new(secret_file, f'curve\n    public-key = "{public}"\n    secret-key = "{secret}"\n', 0o600)
    try:
        _write_new(public_file, f'curve\n    public-key = "{public}"\n', 0o644)
    except InputError:
        secret_file.unlink()  # a key that no client can have
        raise
    return public_file


def secure(socket: Any, file: str | Path) -> None:
    """Make a zmq.Socket a CURVE server with this key file; before `bind`. Raises InputError."""
    import zmq

    public, secret = _read(file)
    if secret is None:
        raise InputError(f"has no secret key; give the file without {PUBLIC}", str(file))
    if (mode := Path(file).stat().st_mode & 0o077) != 0:
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
        public, secret = load_certificate(file)
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
