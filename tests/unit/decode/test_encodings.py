"""The encodings that tables may have."""

import codecs
import encodings
import pkgutil

import pytest

from consumer.decode.encodings import Encoding, encoding_named

REFUSED = {
    "aliases", "base64_codec", "bz2_codec", "charmap", "cp037", "cp1026", "cp1140", "cp273", "cp424", "cp500",
    "cp864", "cp875", "hex_codec", "hz", "idna", "iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_2004",
    "iso2022_jp_3", "iso2022_jp_ext", "iso2022_kr", "mac_arabic", "mac_farsi", "mbcs", "oem", "punycode",
    "quopri_codec", "raw_unicode_escape", "rot_13", "shift_jis_2004", "shift_jisx0213", "undefined", "unicode_escape",
    "utf_7", "uu_codec", "zlib_codec",
}  # fmt: skip
"""Not for texts, of Python alone, or with other bytes for line ends, separators and quotes."""


def is_readable(name: str) -> bool:
    """Whether tables in this encoding are read."""
    try:
        encoding_named(name)
    except ValueError:
        return False
    return True


def test_encodings_in_which_ascii_stands_for_itself_are_readable() -> None:
    """And UTF-16 and UTF-32; each other one of Python's is refused."""
    names = {module.name for module in pkgutil.iter_modules(encodings.__path__)}
    assert {name for name in names if not is_readable(name)} == REFUSED & names


@pytest.mark.parametrize("name", ["GB18030", "windows-1252", "latin-1", "UTF8", "utf-8-sig", "Shift_JIS", "utf_16"])
def test_names_are_those_that_python_knows(name: str) -> None:
    """In any case, and with other names for the same."""
    assert codecs.lookup(encoding_named(name).name).name == codecs.lookup(name.removesuffix("-sig")).name


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("utf-8", b"\xef\xbb\xbfid", (Encoding("utf-8"), 3)),
        ("utf-8", b"id", (Encoding("utf-8"), 0)),
        ("utf-16", "\ufeffid".encode("utf-16-le"), (Encoding("utf-16-le"), 2)),
        ("utf-16", "\ufeffid".encode("utf-16-be"), (Encoding("utf-16-be"), 2)),
        ("utf-16", b"", (Encoding("utf-16-le"), 0)),
        ("utf-16-le", "id".encode("utf-16-le"), (Encoding("utf-16-le"), 0)),
        ("utf-32", "\ufeffi".encode("utf-32-be"), (Encoding("utf-32-be"), 4)),
        ("gb18030", "\ufeffid".encode("gb18030"), (Encoding("gb18030"), 4)),
        ("cp1252", b"id", (Encoding("cp1252"), 0)),
    ],
)
def test_a_mark_tells_the_order_of_bytes(name: str, text: bytes, found: tuple[Encoding, int]) -> None:
    """It is no part of the text."""
    assert Encoding(name).resolve(text) == found


def test_an_order_of_bytes_is_not_guessed() -> None:
    """Without a mark there are two encodings of this name."""
    with pytest.raises(ValueError, match=r"set source\.encoding=utf-16-le or utf-16-be"):
        Encoding("utf-16").resolve("id".encode("utf-16-le"))
