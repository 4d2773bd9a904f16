"""The pages that repair stories: split a member off, merge two stories, and undo either."""
