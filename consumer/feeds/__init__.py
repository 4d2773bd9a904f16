"""The registry of sources and sinks."""
