"""The command line. Results go to standard output, everything else to standard error.

``reference.command_notes`` describes the exit codes.
"""

import signal
from threading import current_thread, main_thread

_CAN_INTERRUPT = current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _CAN_INTERRUPT:
    # During the imports Ctrl-C ends the process without the traceback that Python would print.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    from consumer.cli.main import main
finally:
    if _CAN_INTERRUPT:
        signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["main"]
