"""Trials evaluated by the workers of a Dask scheduler. A worker that is lost costs a repetition, not the session."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.apps.tuning.evaluation import TrialEvaluator, TrialOutcome
from cosim.apps.tuning.setup import evaluator_of, fingerprint_of, request_json
from cosim.core.access.binding import check_address
from cosim.core.errors import CosimError, InputError, RunError, describe_exception
from cosim.core.types import Array
from cosim.rig.rig_files import files_of
from cosim.rig.sections.tuning import TuningKeys
from cosim.rig.unpacked_rig import rig_of_files

REACHED = 2.0  # s for a connection to a socket of SOCKETS
CONNECT = 10.0  # s for an answer of the scheduler
SOCKETS = ("tcp", "tls", "ws", "wss")
WORKERS = 30.0  # s for a worker, at the start and after all are lost
POLL = 0.5  # s
# keys of the request on which the outcome of a trial does not depend
NOT_EVALUATED = ("optimiser", "trials", "batch")
ATTEMPTS = 3  # of a part of a batch, each ended by the loss of workers


@dataclass(frozen=True)
class Package:
    """What a worker needs to evaluate trials: the files of the rig, all parameters of its controllers, the request and
    the digest of its log. key: equal for equal ones."""

    key: str
    files: Mapping[str, bytes]
    as_run: str
    gains: tuple[float, ...]
    request: dict[str, Any]
    log: str

    def evaluator(self) -> TrialEvaluator:
        rig = rig_of_files(self.files, self.as_run, interpret=False, trust=True)  # of the session
        rig.tick_model.parameters[:] = self.gains
        return evaluator_of(rig, TuningKeys(**self.request), self.log)


_evaluators: dict[str, TrialEvaluator] = {}  # of this process, the latest one alone
_one_at_a_time = threading.Lock()


def evaluate_part(package: Package, values: Array, threads: int | None = None) -> list[TrialOutcome]:
    """Runs on a worker, which builds the rig once. threads: None for those that the worker was given."""
    with _one_at_a_time:
        if package.key not in _evaluators:
            _evaluators.clear()
            _evaluators[package.key] = package.evaluator()
        evaluator = _evaluators[package.key]
        evaluator.threads = _threads_of_worker() if threads is None else threads
        return evaluator.evaluate(values)


def _threads_of_worker() -> int:
    from distributed import get_worker

    return get_worker().state.nthreads


class DaskWorkers:
    """Divides each batch among the workers; the parts are put together in their order."""

    def __init__(self, address: str, evaluator: TrialEvaluator, request: TuningKeys) -> None:
        """Raises InputError where Dask is not installed and for what is no address, RunError where no scheduler answers
        or it has no workers."""
        try:
            import distributed
        except ImportError:
            raise InputError("needs distributed; install it with pip install 'cosim[tune]'", "--dask") from None
        if "://" not in address:
            raise InputError(f"'{address}' has no protocol; give an address such as tcp://host:8786", "--dask")
        check_address(address)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        rig, files = evaluator.rig, files_of(evaluator.rig)
        log = "" if evaluator.log is None else evaluator.log.digest
        evaluated = {key: value for key, value in request_json(request).items() if key not in NOT_EVALUATED}
        self._address, self._parts = address, 0
        self._package = Package(
            f"{fingerprint_of(rig)} {evaluated} {log}",
            files.contents,
            files.as_run,
            tuple(rig.tick_model.parameters.tolist()),
            request_json(request),
            log,
        )
        self._check_reached()
        try:
            self._client = distributed.Client(address, timeout=CONNECT, set_as_default=False)
        except ValueError as error:
            raise InputError(f"{error}; give an address such as tcp://host:8786", "--dask") from None
        except (OSError, TimeoutError):
            raise self._silent() from None
        self._wait_for_workers()

    def _check_reached(self) -> None:
        """A client tries again and again, and is closed late. Raises InputError for what is no address, RunError where
        nothing listens, both without delay."""
        from distributed.comm.addressing import parse_address, parse_host_port
        from distributed.comm.registry import get_backend

        try:
            protocol, place = parse_address(self._address)
            get_backend(protocol)
            if protocol in SOCKETS:
                socket.create_connection(parse_host_port(place), timeout=REACHED).close()
        except ValueError as error:
            raise InputError(f"{error}; give an address such as tcp://host:8786", "--dask") from None
        except OSError:
            raise self._silent() from None

    def _silent(self) -> RunError:
        fix = "start one with dask scheduler, or correct the address"
        return RunError(f"no scheduler answers; {fix}", self._address)

    def __enter__(self) -> DaskWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close(timeout=CONNECT)

    def evaluate(self, values: Array) -> list[TrialOutcome]:
        """Raises RunError where the scheduler or all workers are lost, or a worker cannot evaluate."""
        futures: list[Any] = []
        try:
            places = self._workers() or [None]
            parts = np.array_split(values, min(len(values), len(places)))
            futures += [self._submit(part, place) for part, place in zip(parts, places, strict=False)]
            return [outcome for k in range(len(parts)) for outcome in self._result(futures, parts, k)]
        except BaseException as error:
            if self._client.status == "running":
                self._client.cancel(futures, force=True)
            if not isinstance(error, CosimError | KeyboardInterrupt):
                self._check_connected()  # any call of a client fails that has been closed meanwhile
            raise

    def _check_connected(self) -> None:
        """Raises RunError where it could not connect again."""
        if self._client.status in ("closing", "closed"):
            raise RunError("the scheduler was lost", self._address)

    def _submit(self, part: Array, place: str | None = None) -> Any:
        """place: a worker, which the scheduler might not choose: it does not know how long a part takes."""
        self._check_connected()
        self._parts += 1
        chosen = {} if place is None else {"workers": [place], "allow_other_workers": True}
        key = f"trials-{self._parts}-{id(self)}"
        return self._client.submit(evaluate_part, self._package, part, key=key, pure=False, **chosen)

    def _result(self, futures: list[Any], parts: Sequence[Array], k: int) -> list[TrialOutcome]:
        """Of a part, which is repeated where workers were lost."""
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        for attempt in range(ATTEMPTS):
            self._wait(futures[k])
            try:
                return futures[k].result(timeout=CONNECT)
            except (KilledWorker, FutureCancelledError, TimeoutError) as lost:  # or its worker answers no longer
                if attempt + 1 == ATTEMPTS:
                    what = f"a part of a batch was lost with its workers {ATTEMPTS} times ({type(lost).__name__})"
                    raise RunError(f"{what}; look at the logs of the workers", self._address) from None
                futures[k] = self._submit(parts[k])
            except (InputError, RunError):
                raise
            except Exception as error:
                self._check_connected()
                what = f"a worker cannot evaluate: {describe_exception(error)}"
                raise RunError(f"{what}; install the same version of cosim there", self._address) from None
        raise AssertionError("unreachable")

    def _wait(self, future: Any) -> None:
        """Until it is done. Raises RunError where the scheduler is lost, or all workers for a while."""
        done, without = threading.Event(), time.monotonic()
        future.add_done_callback(lambda _: done.set())
        while not done.wait(POLL):
            self._check_connected()
            if self._workers():
                without = time.monotonic()
            elif time.monotonic() - without > WORKERS:
                raise RunError("all workers were lost", self._address)

    def _workers(self) -> list[str]:
        """Their addresses, in an order that stays."""
        return sorted(self._client.scheduler_info(n_workers=-1)["workers"])

    def _wait_for_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=WORKERS)
        except TimeoutError:
            self._client.close(timeout=CONNECT)
            raise RunError(f"it has no workers; start some with dask worker {self._address}", self._address) from None
