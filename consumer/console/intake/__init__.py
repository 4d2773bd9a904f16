"""What the console does in the background: it takes in flags, sends releases, and keeps counts fresh."""
