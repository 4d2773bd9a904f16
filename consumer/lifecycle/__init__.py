"""Starting, waiting, retrying and stopping: what any long run of a process needs. Nothing about articles."""
