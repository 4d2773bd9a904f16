"""Starting, retrying, giving up a batch, and stopping: what any long run needs. It does not know what a batch has."""
