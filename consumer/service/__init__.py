"""The HTTP service: what an article would repeat, and what the store knows of those it has. Alone imports FastAPI."""
