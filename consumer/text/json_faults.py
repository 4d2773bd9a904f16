"""Words the faults of invalid JSON."""


def json_fault(error: Exception) -> str:
    """Return why data could not be decoded, for a message that already names the data."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return str(error).removeprefix("JSON is malformed: ")
