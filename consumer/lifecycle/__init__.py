"""Starting, retrying, giving up a batch, and stopping: the parts that all long runs share."""
