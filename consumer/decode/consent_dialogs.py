"""Finds dialogs in front of a page, above all those that ask for consent, by their structure: without any words.

A dialog has the role of one or stays on the screen, and has something to press; or it has the id that a vendor of such
dialogs gives it on every site.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from lxml import etree

from consumer.decode.element_styles import Look

DIALOGS_MAX: Final = 100
"""The maximum number of elements examined."""
_VENDORS: Final = frozenset(
    {
        *("_evidon_banner", "axeptio_overlay", "borlabscookiebox", "catapult-cookie-bar", "ccc", "cc-main"),
        *("cky-consent", "cmpbox", "cmplz-cookiebanner-container", "consent_blackbar", "cookie-law-info-bar"),
        *("cookie-notice", "cookiescript_injected", "cybotcookiebotdialog", "didomi-host", "didomi-notice"),
        *("didomi-popup", "eu-cookie-law", "ez-cookie-dialog-wrapper", "fc-consent-root"),
        *("hs-eu-cookie-confirmation", "iubenda-cs-banner", "klaro", "moove_gdpr_cookie_info_bar"),
        *("onetrust-banner-sdk", "onetrust-consent-sdk", "ppms_cm_popup_overlay", "qc-cmp2-container"),
        *("shopify-pc__banner", "sp-cc", "tarteaucitronroot", "termly-code-snippet-support"),
        *("truste-consent-track", "uniccmp", "usercentrics-cmp-ui", "usercentrics-root"),
    }
)
_VENDOR_PREFIXES: Final = ("osano-cm-", "sp_message_container_")
_ROLES: Final = frozenset(["alertdialog", "dialog"])
_CONTROLS: Final = ("button", "input", "select")
_OF_PAGES: Final = ("article", "h1", "main")
_NEVER: Final = frozenset(["article", "body", "html", "main"])
_SHARE_MAX: Final = 0.8
"""An element with a larger share of the text is the page itself."""


def consent_dialogs(tree: etree._Element, looks: Mapping[etree._Element, Look]) -> frozenset[etree._Element]:
    """Return the elements of a page that are dialogs in front of it."""
    found: set[etree._Element] = set()
    maybe = {element for element, look in looks.items() if look.fixed}
    for element in tree.iter():
        id_ = element.get("id")
        if id_ is not None and (id_.lower() in _VENDORS or id_.startswith(_VENDOR_PREFIXES)):
            found.add(element)
        if element.tag == "dialog" or element.get("role") in _ROLES or element.get("aria-modal") == "true":
            maybe.add(element)
    if maybe:
        found.update(_with_controls(tree, maybe))
    return frozenset(found)


def _with_controls(tree: etree._Element, maybe: set[etree._Element]) -> Iterator[etree._Element]:
    """Yield candidates that have controls and no article."""
    # In page order, so that the limit always keeps the same ones.
    for element in [element for element in tree.iter() if element in maybe][:DIALOGS_MAX]:
        has_control = next(element.iter(*_CONTROLS), None) is not None
        is_page = element.tag in _NEVER or next(element.iter(*_OF_PAGES), None) is not None
        if has_control and not is_page and _characters(element) <= _characters(tree) * _SHARE_MAX:
            yield element


def _characters(element: etree._Element) -> int:
    return sum(map(len, element.itertext()))
