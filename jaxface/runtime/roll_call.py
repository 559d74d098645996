"""Who takes part in a run of several processes: process 0 hears from every other one before JAX connects them.

answer    process 0 listens at the coordinator's address until all have reported, and refuses what does not fit
report    every other process says its number and how many processes it was told of
silence   why JAX's service does not answer at an address

JAX waits for as many processes as process 0 was told of, however many there are, and takes a process that was told of
more. Both end in a deadlock or in `abort()`. The roll call uses the port that JAX's service opens afterwards. Each
message is a line of words, the first one `jaxface`.
"""

import contextlib
import secrets
import select
import socket
import time

from absl import logging

__all__ = []

SECONDS_TO_REACH = 4.0  # process 0 at its address
SECONDS_TO_START = 120  # from the first process to the last
_SECONDS_TO_SAY = 10  # who is missing, again and again
_SECONDS_TO_REFUSE = 2.0  # processes that report after a refusal
_HELLO, _HERE, _GO, _NO = "jaxface", "here", "go", "no"
_SETTINGS_FRAME = b"\x04"  # of HTTP/2, which JAX's service sends to everybody who connects
_LONGEST = 1000  # bytes of a line


class _Refused(ValueError):
    """The reason goes to all processes that have reported."""


def answer(coordinator: str, num_processes: int) -> None:
    """Returns when every other process has reported; ValueError, in all of them, when their flags do not fit."""
    with _listening(coordinator) as server, contextlib.ExitStack() as kept:
        token = secrets.token_hex(8)
        own = kept.enter_context(_connected(coordinator, time.monotonic() + SECONDS_TO_REACH))
        own.sendall(f"{_HELLO} self {token}\n".encode())
        roll = _Roll(num_processes, token)
        try:
            _complete(server, roll, coordinator)
        except _Refused as error:
            roll.tell(f"{_NO} {error}")
            _refuse(server, roll.missing, f"{_NO} {error}")
            raise
        roll.tell(_GO)


def report(coordinator: str, num_processes: int, process_id: int) -> None:
    """Returns when process 0 says that all are there; ValueError when it does not answer, or refuses."""
    end = time.monotonic() + SECONDS_TO_REACH
    while True:
        with _connected(coordinator, end) as connection:
            heard = _asked(connection, f"{_HELLO} {process_id} {num_processes}", end)
            if heard == _HERE:
                connection.settimeout(2 * SECONDS_TO_START)
                heard = _line(connection)
                if not heard:
                    raise ValueError("process 0 ended before all processes had started. Its log says why.")
        if heard.startswith(f"{_NO} "):
            raise ValueError(heard.partition(" ")[2])
        if heard == _GO:
            return
        if time.monotonic() > end:
            raise ValueError(unreached(coordinator, heard or "it hangs up"))
        time.sleep(0.1)


def silence(address: str) -> str:
    """Why JAX's coordination service does not answer at an address; empty if it does."""
    try:
        with socket.create_connection(_host_and_port(address), timeout=1.0) as connection:
            return "" if connection.recv(9)[3:4] == _SETTINGS_FRAME else "something else listens there"
    except OSError as error:
        return error.strerror or str(error)


def unreached(coordinator: str, reason: str) -> str:
    """The message of a process that does not find process 0."""
    return (
        f"--coordinator={coordinator} does not answer within {SECONDS_TO_REACH:.0f} s ({reason}). It must be the "
        "address of process 0, with a free port, the same in all processes; start process 0 first."
    )


def unopened(coordinator: str, error: Exception) -> str:
    """The message of process 0 when the port cannot be opened."""
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
    return f"--coordinator={coordinator} could not be opened: {reason}. Choose a free port."


class _Roll:
    """The connections of the processes that have reported."""

    def __init__(self, num_processes: int, token: str):
        self.num_processes, self._token = num_processes, token
        self.is_reached = False  # by this process itself, at the address that the others use
        self.connections: dict[int, socket.socket] = {}

    @property
    def missing(self) -> list[int]:
        return [number for number in range(1, self.num_processes) if number not in self.connections]

    def take(self, connection: socket.socket) -> None:
        """Hears one process; strangers are hung up on."""
        connection.settimeout(1.0)
        words = _line(connection).split()
        if words == [_HELLO, "self", self._token]:
            self.is_reached = True
        elif len(words) == 3 and words[0] == _HELLO and words[1].isdigit() and words[2].isdigit():
            self._enter(connection, int(words[1]), int(words[2]))
            return
        connection.close()

    def _enter(self, connection: socket.socket, number: int, count: int) -> None:
        twice = number in self.connections
        self.connections[-number if twice else number] = connection  # all of them hear of a refusal
        if count != self.num_processes:
            raise _Refused(
                f"--num_processes must be the same in all processes; process 0 has {self.num_processes}, "
                f"process {number} has {count}."
            )
        if twice or number == 0:
            raise _Refused(f"--process_id={number} was given to two processes. Each needs a number of its own.")
        _send(connection, _HERE)

    def drop(self, connection: socket.socket) -> None:
        number = next(number for number, other in self.connections.items() if other is connection)
        raise _Refused(f"process {number} ended before all processes had started. Its log says why.")

    def tell(self, message: str) -> None:
        for connection in self.connections.values():
            _send(connection, message)
            connection.close()


def _complete(server: socket.socket, roll: _Roll, coordinator: str) -> None:
    """Hears processes until none is missing."""
    begin = said = time.monotonic()
    while roll.missing or not roll.is_reached:
        for ready in select.select([server, *roll.connections.values()], [], [], 0.2)[0]:
            if ready is server:
                roll.take(server.accept()[0])
            else:
                roll.drop(ready)  # it has nothing to say, so it has ended
        now = time.monotonic()
        missing = ", ".join(map(str, roll.missing))
        if not roll.is_reached and now > begin + SECONDS_TO_REACH:
            raise _Refused(unreached(coordinator, "another program answers there"))
        if now > begin + SECONDS_TO_START:
            raise _Refused(
                f"process {missing} has not started within {SECONDS_TO_START} s. Start --num_processes="
                f"{roll.num_processes} processes, each with a --process_id of its own."
            )
        if now > said + _SECONDS_TO_SAY:
            said = now
            logging.info("process 0 waits for process %s", missing)


def _refuse(server: socket.socket, missing: list[int], message: str) -> None:
    """Tells processes that report a little later."""
    end = time.monotonic() + _SECONDS_TO_REFUSE
    for _ in missing:
        if not select.select([server], [], [], max(0.0, end - time.monotonic()))[0]:
            return
        with server.accept()[0] as connection:
            connection.settimeout(1.0)
            _line(connection)
            _send(connection, message)


def _listening(coordinator: str) -> socket.socket:
    where = "", _host_and_port(coordinator)[1]
    try:
        with contextlib.suppress(OSError):
            if socket.has_dualstack_ipv6():
                return socket.create_server(where, family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(where)
    except OSError as error:
        raise ValueError(unopened(coordinator, error)) from error


def _connected(coordinator: str, end: float) -> socket.socket:
    """A connection to the address, tried until it is there or the time is over."""
    while True:
        try:
            return socket.create_connection(_host_and_port(coordinator), timeout=1.0)
        except OSError as error:
            if time.monotonic() > end:
                raise ValueError(unreached(coordinator, error.strerror or str(error))) from error
        time.sleep(0.1)


def _asked(connection: socket.socket, question: str, end: float) -> str:
    """The first answer; what happened otherwise in words of its own."""
    _send(connection, question)
    connection.settimeout(max(1.0, end - time.monotonic()))
    heard = _line(connection)
    if heard[3:4].encode() == _SETTINGS_FRAME:
        return "the processes of this address have started without this one"
    is_ours = heard in (_HERE, _GO) or heard.startswith(f"{_NO} ")
    return heard if is_ours or not heard else "something else listens there"


def _send(connection: socket.socket, message: str) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(f"{message}\n".encode())


def _line(connection: socket.socket) -> str:
    """What the other side says until the end of a line; what there is of it when it hangs up or is late."""
    heard = b""
    with contextlib.suppress(OSError):
        while not heard.endswith(b"\n") and len(heard) < _LONGEST and heard[3:4] != _SETTINGS_FRAME:
            if not (more := connection.recv(1)):  # the next line may be there already
                break
            heard += more
    return heard.decode(errors="replace").removesuffix("\n")


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
