"""Numbers with their nouns."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with separators and its noun, such as 1 item or 1,024 items."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
