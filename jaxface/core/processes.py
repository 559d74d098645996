"""What the processes of one run tell each other: process 0 decides, the others hear what it decided.

index, count     which process this is, of how many
from_first       the result of a function that process 0 alone calls, in every process
gather           a value of each process, in every process
tell, wait_for   a value under a key, from one process to the others
rendezvous       waits until every process is here

Messages go through the key-value store of JAX's coordination service, because collectives give up when a process comes
late and stages may take hours. JAX offers the store in `jax._src` only; no other module takes it from there.
"""

import itertools
import time
from collections.abc import Callable
from typing import Any

import jax
from jax._src import distributed

__all__ = ["PeerError", "address", "count", "from_first", "gather", "index", "rendezvous", "tell", "wait_for"]

_POLL_MS = 1000  # signals reach Python between two polls
_PIECE = 4 * 2**20  # bytes of a message
_NOTHING, _CONTENT = b"n", b"c"
_KINDS: dict[bytes, type[Exception]] = {b"v": ValueError, b"o": OSError, b"r": RuntimeError}

_numbers = itertools.count()  # all processes send and receive in the same order


class PeerError(RuntimeError):
    """Another process of the run has ended or cannot be reached."""


def index() -> int:
    """The number of this process. Before the first array too: the number of the backend waits for all processes."""
    return distributed.global_state.process_id if _store() is not None else jax.process_index()


def address() -> str:
    """Where process 0 is reached, as HOST:PORT."""
    return str(distributed.global_state.coordinator_address)


def count() -> int:
    """How many processes run this program together."""
    return distributed.global_state.num_processes if _store() is not None else 1


def from_first(work: Callable[[], bytes | None]) -> bytes | None:
    """The result of `work()` in process 0, in every process; an error of `work` is raised in every process.

    Every process must call this, in the same order. The others wait as long as process 0 lives.
    """
    if count() == 1:
        return work()
    key = f"jaxface/message/{next(_numbers)}"
    if index():
        return _received(key)
    try:
        content = work()
    except Exception as error:
        kind = next((kind for kind, cls in _KINDS.items() if isinstance(error, cls)), b"r")
        _send(key, kind + str(error).encode(errors="backslashreplace"))
        raise
    _send(key, _NOTHING if content is None else _CONTENT + content)
    return content


def gather(value: bytes) -> list[bytes]:
    """The values of all processes, in every process, which must all call this in the same order."""
    key = f"jaxface/gathered/{next(_numbers)}"
    tell(f"{key}/{index()}", value)
    return [wait_for(f"{key}/{other}") for other in range(count())]


def rendezvous() -> None:
    """Returns when every process has called it."""
    if count() > 1:
        gather(b"")


def tell(key: str, value: bytes) -> None:
    """Leaves a value for the others; the first value of a key stays."""
    try:
        _client().key_value_set_bytes(key, value)
    except jax.errors.JaxRuntimeError as error:
        if "ALREADY_EXISTS" not in str(error):
            raise _unreachable() from error


def wait_for(key: str, seconds: float | None = None) -> bytes:
    """The value of a key, when it has one; TimeoutError after some seconds, or never."""
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        try:
            value: bytes = _client().blocking_key_value_get_bytes(key, _POLL_MS)
        except jax.errors.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise _unreachable() from error
            if end is not None and time.monotonic() > end:
                raise TimeoutError(key) from None
        else:
            return value


def _send(key: str, message: bytes) -> None:
    """In pieces: the others read one while the next is sent. Long messages are deleted when all have read them."""
    num_pieces = -(-len(message) // _PIECE)
    tell(key, num_pieces.to_bytes(8))
    for number in range(num_pieces):
        tell(f"{key}/{number}", message[number * _PIECE : (number + 1) * _PIECE])
    if num_pieces > 1:
        for other in range(1, count()):
            wait_for(f"{key}/read/{other}")
        for number in range(num_pieces):
            _client().key_value_delete(f"{key}/{number}")


def _received(key: str) -> bytes | None:
    num_pieces = int.from_bytes(wait_for(key))
    message = b"".join([wait_for(f"{key}/{number}") for number in range(num_pieces)])
    if num_pieces > 1:
        tell(f"{key}/read/{index()}", b"")
    kind, content = message[:1], message[1:]
    if kind in _KINDS:
        raise _KINDS[kind](content.decode())
    return None if kind == _NOTHING else content


def _store() -> Any:
    return distributed.global_state.client


def _client() -> Any:
    if (client := _store()) is None:
        raise _unreachable()
    return client


def _unreachable() -> PeerError:
    return PeerError(
        "process 0 has ended or cannot be reached. Its log says why; start all processes again with the same command: "
        "finished stages are kept."
    )
