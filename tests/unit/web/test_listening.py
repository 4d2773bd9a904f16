"""The socket that the service listens on."""

import socket

from consumer.web.server import listening_socket


def test_the_body_of_an_answer_does_not_wait_for_the_acknowledgement_of_its_head() -> None:
    """On a connection without TCP_NODELAY a client that acknowledges late gets every answer 40 ms late."""
    with (
        listening_socket("127.0.0.1:0", needs_token=False) as listening,
        socket.create_connection(listening.getsockname()[:2]),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
