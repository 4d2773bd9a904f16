"""A feed of short articles in a made-up language, written to a file: one for the command line."""

import json
import random
from pathlib import Path

SYLLABLES = ("ba", "lo", "mi", "ter", "ron", "sa", "ku", "vel", "dar", "ni", "pos", "gre", "fa", "tun")
WORDS_AN_ARTICLE = 50
RECENT = 80


def word(chance: random.Random) -> str:
    """A word of the language."""
    return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 4)))


def _copied(body: str, chance: random.Random) -> str:
    """The text with a few words changed: about the threshold of similarity, more often above it."""
    words = body.split()
    for place in chance.sample(range(len(words)), chance.choice((0, 0, 1, 2, 3))):
        words[place] = word(chance)
    return " ".join(words)


def write_feed(path: Path, lines: int, seed: str) -> None:
    """Originals and copies in equal parts, also copies of copies; now and then a retraction, and a broken line."""
    chance = random.Random(seed)
    bodies: list[str] = []
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            if number % 97 == 50:
                file.write('{"id": "broken"\n')
                continue
            if number % 101 == 60:
                file.write(json.dumps({"id": f"article {chance.randrange(number)}", "body": None}) + "\n")
                continue
            is_copy = bodies and chance.random() < 0.5
            body = (
                _copied(chance.choice(bodies[-RECENT:]), chance)
                if is_copy
                else " ".join(word(chance) for _ in range(WORDS_AN_ARTICLE))
            )
            bodies.append(body)
            file.write(json.dumps({"id": f"article {number}", "title": f"Title {number}", "body": body}) + "\n")
