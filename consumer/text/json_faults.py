"""Words the faults of what should be JSON."""


def json_fault(error: Exception) -> str:
    """Return why data is not JSON. Use it in a message that already says that it is not."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return str(error).removeprefix("JSON is malformed: ")
