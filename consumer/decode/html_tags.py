"""The tags that decide how the text of HTML is read."""

from typing import Final

BLOCKS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "br", "button", "caption", "center", "dd", "details"),
        *("dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3"),
        *("h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol"),
        *("optgroup", "option", "p", "pre", "search", "section", "select", "summary", "table", "tbody", "td"),
        *("textarea", "tfoot", "th", "thead", "tr", "ul"),
    }
)
"""Elements that begin a line, and end one."""
INLINE: Final = frozenset(
    {
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
        *("ins", "kbd", "mark", "nobr", "q", "rb", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub"),
        *("sup", "time", "tt", "u", "var", "wbr"),
    }
)
"""Elements within a line."""
HIDDEN: Final = frozenset(["script", "style", "title", "template", "noscript", "iframe", "noembed", "noframes"])
"""Elements whose text no reader sees in the page."""
HEADINGS: Final = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
