"""Finds the title of a web page."""

from lxml import etree

from consumer.decode.html_text import text_of


def page_title(tree: etree._Element) -> str:
    """Return the title of a page on one line, "" where it has none.

    ``og:title`` is the headline for those who link to the page, ``title`` often has the name of the site as well, and
    the first ``h1`` may be that name alone.
    """
    found: dict[str, str] = {}
    for element in tree.iter("meta", "title", "h1"):
        if element.tag != "meta":
            # Only the first of each: pictures within the page have titles, too.
            if element.tag not in found:
                found[element.tag] = _line(element.text or "" if element.tag == "title" else text_of(element))
        elif "og:title" in {element.get("property"), element.get("name")} and (
            title := _line(element.get("content") or "")
        ):
            return title
    return found.get("title") or found.get("h1") or ""


def _line(text: str) -> str:
    return " ".join(text.split())
