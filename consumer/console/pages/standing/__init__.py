"""The pages of standing decisions, and their parts on other pages."""
