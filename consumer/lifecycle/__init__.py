"""Starting, retrying, giving up a batch, and stopping, for any long run, whatever its batches contain."""
