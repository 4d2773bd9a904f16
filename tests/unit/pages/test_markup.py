"""Markup made of strings from anywhere."""

from consumer.pages.markup import element, joined


def test_strings_are_text_wherever_they_stand() -> None:
    """Strings are escaped between tags and in attributes; markup made here stays markup, also when nested."""
    inner = element("b", '<&">')
    assert inner.markup == "<b>&lt;&amp;&quot;&gt;</b>"
    assert element("p", inner, "'x'", class_='a" onclick="b').markup == (
        '<p class="a&quot; onclick=&quot;b"><b>&lt;&amp;&quot;&gt;</b>&#x27;x&#x27;</p>'
    )
    assert joined("<", inner).markup == "&lt;<b>&lt;&amp;&quot;&gt;</b>"


def test_names_of_attributes() -> None:
    """Python keywords and hyphens can be used, None is left out, and void elements are not closed."""
    assert element("meta", http_equiv="refresh", name="x", class_=None).markup == '<meta http-equiv="refresh" name="x">'
