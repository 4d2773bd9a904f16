"""The pages that repair stories: splitting a member off, merging two stories, and undoing either."""
