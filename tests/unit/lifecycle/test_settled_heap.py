"""What was loaded at the start is left out of later collections; in processes of their own, since it stays so."""

import subprocess
import sys

PROGRAM = """
import gc, weakref
from consumer.lifecycle.heap import settle_heap

class Node:
    pass

gone, loaded, later = Node(), Node(), None
gone.self, found = gone, weakref.ref(gone)
del gone
{call}
later = Node()
objects = gc.get_objects()
print(found() is None, any(each is loaded for each in objects), any(each is later for each in objects))
"""


def objects_seen(call: str) -> list[str]:
    """Whether garbage is gone, and whether the collector sees what was there before the call, and after."""
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(call=call)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_what_is_alive_is_not_looked_at_again() -> None:
    """Garbage is collected once; what comes later is looked at as always."""
    assert objects_seen("settle_heap()") == ["True", "False", "True"]
    assert objects_seen("pass") == ["False", "True", "True"]
