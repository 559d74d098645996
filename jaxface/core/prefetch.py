"""Reading ahead: the next item is produced in a thread while the caller works on this one."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["ahead"]

K = TypeVar("K")
T = TypeVar("T")


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
