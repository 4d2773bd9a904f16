"""The stack of docker-compose.yml, built and started once for the tests of this folder, and gone with them."""

import os
from collections.abc import Iterator

import pytest

from tests.compose.stack import FILES, TRANSCRIPT, Stack, engine

_MISSING = (
    "make compose-test needs docker with its compose plugin, or podman with podman-compose 1.6 or newer "
    "(pip install podman-compose); COMPOSE names the command"
)


@pytest.fixture(scope="session")
def images() -> Stack:
    """The images, built; nothing runs."""
    found = engine()
    if found is None:
        pytest.fail(_MISSING, pytrace=False)
    TRANSCRIPT.unlink(missing_ok=True)
    stack = Stack(found, os.environ.get("COMPOSE_FILES", ":".join(FILES)).split(":"))
    stack.say(f"with {' '.join(found.compose)}")
    stack.build()
    stack.say("images built")
    return stack


@pytest.fixture(scope="session")
def stack(images: Stack) -> Iterator[Stack]:
    """The stack, up; it is taken down whatever happens, as is what an earlier run was kept from taking down."""
    images.down()
    try:
        images.up()
        images.wait_healthy("consumer")
        yield images
    finally:
        images.down()
        images.say("taken down")
