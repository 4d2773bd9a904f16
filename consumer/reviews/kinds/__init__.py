"""The kinds of queue entries: their meaning, and the intake of all kinds except flags."""
