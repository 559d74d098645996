import contextlib
import threading
import time

import pytest

from jaxface.core.prefetch import ahead, in_threads, is_busy


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


def test_works_run_at_the_same_time_and_their_results_come_in_order():
    both = threading.Barrier(2, timeout=10)  # breaks unless two threads meet
    first_done = threading.Event()

    def first():
        both.wait()
        first_done.wait(10)
        return 1

    def second():
        both.wait()
        first_done.set()  # the second ends before the first
        return 2

    found = in_threads({"first": first, "second": second, "third": lambda: 3}, at_once=2)
    assert list(found) == [("first", 1), ("second", 2), ("third", 3)]


def test_no_more_works_at_once_than_were_asked_for():
    lock, running, most = threading.Lock(), [], []

    def work():
        with lock:
            running.append(1)
            most.append(len(running))
        time.sleep(0.02)
        with lock:
            running.pop()

    list(in_threads({str(k): work for k in range(6)}, at_once=2))
    assert max(most) == 2


def test_a_loop_that_ends_early_begins_nothing_further():
    begun, released = [], threading.Event()

    def slow():
        begun.append("slow")
        released.wait(10)

    works = {"first": lambda: 1, "slow": slow, "also slow": slow} | {
        f"later {k}": lambda: begun.append("later") for k in range(20)
    }
    with contextlib.closing(in_threads(works, at_once=2)) as found, contextlib.suppress(ZeroDivisionError):
        assert next(found) == ("first", 1)
        while len(begun) < 2:
            time.sleep(0.001)
        raise ZeroDivisionError
    released.set()
    while is_busy():
        time.sleep(0.001)
    assert begun == ["slow", "slow"]


def test_after_an_error_nothing_further_begins_and_the_caller_need_not_wait():
    begun, meeting, released = [], threading.Barrier(2, timeout=10), threading.Event()

    def fails():
        meeting.wait()
        raise ZeroDivisionError

    def slow():
        begun.append("slow")
        meeting.wait()
        released.wait(10)

    works = {"fails": fails, "slow": slow} | {f"later {k}": lambda: begun.append("later") for k in range(50)}
    works["later 0"] = lambda: released.wait(10)  # the free thread takes one more before the caller hears
    with pytest.raises(ZeroDivisionError):
        list(in_threads(works, at_once=2))
    assert is_busy()  # the slow one is still there
    released.set()
    for _ in range(1000):
        if not is_busy():
            break
        time.sleep(0.01)
    assert not is_busy()
    assert begun == ["slow"]
