"""The command line. Results go to standard output, everything else to standard error.

Exit codes: 0 every record was answered, 1 a bug, 2 an invalid option or configuration, 3 the input cannot be read, 4
the store was created with other settings, is damaged or is not a dupwatch store, 5 the store failed, 6 the output
cannot be written, 7 too many records of a file or a stream cannot be judged, 130 and 143 stopped by SIGINT and SIGTERM
after finishing the work in progress.
"""

import signal
from threading import current_thread, main_thread

_CAN_INTERRUPT = current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _CAN_INTERRUPT:
    # During the imports Ctrl-C simply ends the process; Python would print a traceback of the import in progress.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    from consumer.cli.main import main
finally:
    if _CAN_INTERRUPT:
        signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["main"]
