"""Working ahead in threads: the next item while the caller works on this one, or several pieces of work at once."""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["ahead", "in_threads", "is_busy"]

K = TypeVar("K")
T = TypeVar("T")

_WORKER = "jaxface-work"  # the beginning of the names of threads


def ahead(produce: Callable[[K], T], keys: Iterable[K]) -> Iterator[T]:
    """`produce(key)` for each key in turn; one call is ahead of the caller, and two items at most are in memory.

    An error of `produce` is raised where its item would have come. `produce` runs in one thread of its own.
    """
    pending: Future[T] | None = None
    with ThreadPoolExecutor(1) as pool:
        for key in keys:
            following = pool.submit(produce, key)
            if pending is not None:
                yield pending.result()
            pending = following
        if pending is not None:
            yield pending.result()


def in_threads(works: Mapping[str, Callable[[], T]], *, at_once: int) -> Generator[tuple[str, T], None, None]:
    """Name and result of each piece of work in turn, while up to `at_once` of them run in threads.

    An error is raised where its result would have come. After that, or when the generator is closed, nothing further
    begins, but threads that compute go on: the caller need not wait, and `is_busy` tells until they have finished.
    """
    pool = ThreadPoolExecutor(at_once, thread_name_prefix=_WORKER)
    try:
        pending = {name: pool.submit(work) for name, work in works.items()}
        for name, future in pending.items():
            yield name, future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def is_busy() -> bool:
    """Whether a thread of `in_threads` is still there."""
    return any(thread.name.startswith(_WORKER) for thread in threading.enumerate())
