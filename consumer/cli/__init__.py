"""The command line. Results go to standard output, everything else to standard error.

Exit codes: 0 all input was answered, 1 a defect, 2 a wrong option or configuration, 3 the input cannot be read, 4 the
store was made with other settings or is none, 5 the store failed, 6 the output cannot be written, 7 too many records of
a file or a stream cannot be judged, 130 and 143 stopped by SIGINT and SIGTERM after what was begun was finished.
"""

from consumer.cli.main import main

__all__ = ["main"]
