"""Where verdicts and dead letters go: one adapter a module."""
