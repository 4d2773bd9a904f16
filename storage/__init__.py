"""Where articles, postings and verdicts are kept: the ``Store`` port and its implementations."""
