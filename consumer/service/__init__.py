"""The HTTP service: checks, stores, shows and releases articles, and changes banks. Alone imports FastAPI."""
