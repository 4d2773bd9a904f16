"""The audit log: one line for each change of state that somebody asked for."""
