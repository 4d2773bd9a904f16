"""Where verdicts go: files, standard output, and topics, through an outbox with or without transactions.

The sinks of dead letters are in ``dead_letters``.
"""
