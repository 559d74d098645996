"""Processes that report to process 0, as threads of one process."""

import concurrent.futures
import contextlib
import socket
import time

import pytest

from jaxface.runtime import roll_call
from tests.two_processes import free_port


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(roll_call, "SECONDS_TO_REACH", 0.5)
    monkeypatch.setattr(roll_call, "SECONDS_TO_START", 5)
    monkeypatch.setattr(roll_call, "_SECONDS_TO_REFUSE", 0.3)


def outcomes(num_processes, others):
    """What process 0 and the others, each (process_id, num_processes), were told; empty for those that may go on."""
    address = f"127.0.0.1:{free_port()}"
    calls = [(roll_call.answer, num_processes), *((roll_call.report, count, number) for number, count in others)]

    def told(call):
        try:
            call[0](address, *call[1:])
        except ValueError as error:
            return str(error)
        return ""

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(told, calls))


def test_all_go_on_when_all_are_there():
    assert outcomes(1, []) == [""]
    assert outcomes(3, [(2, 3), (1, 3)]) == ["", "", ""]


def test_the_port_is_free_afterwards():
    address = f"127.0.0.1:{free_port()}"
    for _ in range(2):
        roll_call.answer(address, 1)


@pytest.mark.parametrize(("count", "others"), [(3, [(1, 2)]), (2, [(1, 3)]), (4, [(2, 4), (1, 2)])])
def test_different_numbers_of_processes_are_refused_in_all(count, others):
    told = outcomes(count, others)
    wrong, its_count = next((number, other) for number, other in others if other != count)
    sentence = (
        f"--num_processes must be the same in all processes; process 0 has {count}, process {wrong} has {its_count}."
    )
    assert told == [sentence] * len(told)


@pytest.mark.parametrize("number", [0, 1])
def test_a_number_that_two_processes_have(number):
    told = outcomes(3, [(1, 3), (number, 3)])
    assert set(told) == {f"--process_id={number} was given to two processes. Each needs a number of its own."}


def test_strangers_are_hung_up_on():
    address = f"127.0.0.1:{free_port()}"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(roll_call.answer, address, 2)
        for words in (b"GET / HTTP/1.1\r\n\r\n", b"jaxface self guess\n", b"jaxface 1 two\n", b"\xff\n"):
            with roll_call._connected(address, time.monotonic() + 5) as stranger:
                stranger.sendall(words)
                with contextlib.suppress(ConnectionResetError):
                    assert stranger.recv(10) == b""
        roll_call.report(address, 2, 1)
        assert first.result() is None


def test_a_process_that_ends_before_the_others_start():
    address = f"127.0.0.1:{free_port()}"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(roll_call.answer, address, 3)
        with roll_call._connected(address, time.monotonic() + 5) as connection:
            assert roll_call._asked(connection, "jaxface 1 3", time.monotonic() + 5) == "here"
        with pytest.raises(ValueError, match="process 1 ended before all processes had started"):
            first.result()


def test_a_process_that_does_not_start(monkeypatch):
    monkeypatch.setattr(roll_call, "SECONDS_TO_START", 0.5)
    with pytest.raises(ValueError, match=r"process 1, 2 has not started within 0.5 s. Start --num_processes=3 proc"):
        roll_call.answer(f"127.0.0.1:{free_port()}", 3)


@contextlib.contextmanager
def program(banner, callers):
    """Something at an address that greets everybody, and hangs up."""

    def serve(server):
        for _ in range(callers):
            with server.accept()[0] as connection:
                connection.sendall(banner)
                connection.recv(100)

    with socket.create_server(("127.0.0.1", 0)) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve, server)
        yield f"127.0.0.1:{server.getsockname()[1]}"
        served.result()


def test_process_0_that_ends():
    with program(b"here\n", 1) as address, pytest.raises(ValueError, match="process 0 ended before all processes had"):
        roll_call.report(address, 2, 1)


@pytest.mark.parametrize(
    ("banner", "reason"),
    [(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", "have started without this one"), (b"SSH-2.0\n", "something else")],
)
def test_another_program_at_the_address(banner, reason, monkeypatch):
    monkeypatch.setattr(roll_call, "SECONDS_TO_REACH", 0.0)
    with program(banner, 2) as address:
        with pytest.raises(ValueError, match=rf"--coordinator={address} does not answer within 0 s \(.*{reason}"):
            roll_call.report(address, 2, 1)
        assert (roll_call.silence(address) == "") == (banner[3:4] == b"\x04")
        with pytest.raises(ValueError, match=r"could not be opened: .*in use.* Choose a free port"):
            roll_call.answer(address, 2)


def test_nobody_at_the_address():
    address = f"127.0.0.1:{free_port()}"
    assert roll_call.silence(address) == "Connection refused"
    with pytest.raises(ValueError, match=r"does not answer within 0 s \(Connection refused\).*start process 0 first"):
        roll_call.report(address, 2, 1)


def test_an_address_of_another_machine(monkeypatch):
    """Process 0 reaches somebody at the address, who is not itself."""
    mine, other = socket.socketpair()
    monkeypatch.setattr(roll_call, "_connected", lambda *_: mine)
    with other, pytest.raises(ValueError, match=r"does not answer within 0 s \(another program answers there\)"):
        roll_call.answer(f"127.0.0.1:{free_port()}", 2)
