"""One process: every function is at once its own answer. Two processes: `tests.runtime.test_distributed`."""

import pytest

from jaxface.core import processes


def test_alone_the_first_process_is_this_one():
    assert (processes.index(), processes.count()) == (0, 1)
    assert processes.from_first(lambda: b"decided") == b"decided"
    assert processes.from_first(lambda: None) is None
    processes.rendezvous()

    def fails():
        raise FileNotFoundError("no such file")

    with pytest.raises(FileNotFoundError, match="no such file"):
        processes.from_first(fails)


def test_nobody_hears_a_message_without_the_others():
    with pytest.raises(processes.PeerError, match="process 0 has ended or cannot be reached"):
        processes.tell("key", b"value")


class Store:
    """A key-value store for two processes that run one after the other in one."""

    def __init__(self):
        self.values = {}

    def key_value_set_bytes(self, key, value):
        self.values[key] = value

    def blocking_key_value_get_bytes(self, key, _):
        return self.values[key]

    def key_value_delete(self, key):
        del self.values[key]


def test_a_message_in_pieces_is_whole_and_its_pieces_are_deleted(monkeypatch):
    store, state = Store(), processes.distributed.global_state
    monkeypatch.setattr(state, "client", store)
    monkeypatch.setattr(state, "num_processes", 2)
    monkeypatch.setattr(processes, "_PIECE", 4)
    message = bytes(range(11))
    key = "jaxface/message"
    store.values[f"{key}/read/1"] = b""  # as if the other had read it already
    pieces = {}
    monkeypatch.setattr(store, "key_value_delete", lambda name: pieces.update({name: store.values.pop(name)}))
    processes._send(key, b"c" + message)
    assert sorted(pieces) == [f"{key}/{number}" for number in range(3)]
    store.values |= pieces
    monkeypatch.setattr(state, "process_id", 1)
    assert processes._received(key) == message


@pytest.mark.parametrize(
    ("error", "kind"), [(FileNotFoundError, OSError), (ValueError, ValueError), (KeyError, RuntimeError)]
)
def test_an_error_of_the_first_is_raised_in_the_others(error, kind, monkeypatch):
    state = processes.distributed.global_state
    monkeypatch.setattr(state, "client", Store())
    monkeypatch.setattr(state, "num_processes", 2)

    def fails():
        raise error("what went wrong")

    monkeypatch.setattr(processes, "_numbers", iter([7, 7]))
    with pytest.raises(error):
        processes.from_first(fails)
    monkeypatch.setattr(state, "process_id", 1)
    with pytest.raises(kind, match="what went wrong"):
        processes.from_first(lambda: b"never called")
