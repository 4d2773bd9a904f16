"""The pages of webhooks: their list, each one of them, and what is said of attempts."""
