"""Commands about people, their decisions, and tokens for programs."""
