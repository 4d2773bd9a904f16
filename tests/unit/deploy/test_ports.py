"""Free ports, and telling a gateway that answers from one that does not."""

import socket
import threading

import pytest

from deploy.local.ports import HOST, free_ports, gateway_answers, is_free

_NAME = b"\0\0\0\x0dgetTableNames\0\0\0\x01"
_NAMES = b"\x80\x01\0\x02" + _NAME + b"\x0f\0\0\x0b\0\0\0\0\0"
_IO_ERROR = b"\x80\x01\0\x02" + _NAME + b"\x0c\0\x01\0\0"
_UNKNOWN = b"\x80\x01\0\x03" + _NAME + b"\x0b\0\x01\0\0\0\0\0"


def test_ports_are_free_and_different() -> None:
    """Ports that are given out are free, no two are the same, and one that is taken is told."""
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(map(is_free, ports))
    with socket.create_server((HOST, ports[0])):
        assert not is_free(ports[0])


def test_a_port_is_not_given_again_soon() -> None:
    """A server that is starting may not listen yet."""
    given = [port for _ in range(100) for port in free_ports(2)]
    assert len(set(given)) == 200


@pytest.mark.parametrize(("reply", "answers"), [(_NAMES, True), (_IO_ERROR, False), (_UNKNOWN, False), (b"", False)])
def test_a_gateway_that_answers(reply: bytes, *, answers: bool) -> None:
    """Only the names of tables are an answer: an error, a gateway without HBase or a closed connection are none."""
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        assert gateway_answers(server.getsockname()[1]) is answers
        thread.join()


def test_nobody_answers() -> None:
    """Where nobody listens nobody answers."""
    assert not gateway_answers(free_ports(1)[0])
