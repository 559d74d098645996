import threading

import pytest

from jaxface.core.prefetch import ahead


def test_items_come_in_order_and_one_ahead():
    started = []
    released = threading.Event()

    def produce(key):
        started.append(key)
        if key == 1:
            released.wait(10)
        return 10 * key

    items = ahead(produce, range(4))
    assert next(items) == 0
    while len(started) < 2:  # the thread is at item 1 while the caller has item 0
        pass
    assert started == [0, 1]
    released.set()
    assert list(items) == [10, 20, 30]
    assert started == [0, 1, 2, 3]


def test_nothing_gives_nothing():
    assert list(ahead(str, [])) == []
    assert list(ahead(str, [1])) == ["1"]


def test_an_error_comes_in_its_place():
    items = ahead(lambda key: 1 // key, [2, 1, 0, 5])
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(items)


def test_a_loop_that_is_left_leaves_no_thread():
    before = threading.active_count()
    items = ahead(str, range(100))
    next(items)
    items.close()
    assert threading.active_count() == before
