"""The kinds of entries of the queue: what each of them means, and how those that are no flags come in."""
