"""The pages of webhooks: the list, a page for each, and descriptions of attempts."""
