"""Signatures, as receivers check them."""

import json
import time
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from consumer.webhooks.signing import new_secret, signature, signed_headers


def test_a_secret_is_as_the_specification_says() -> None:
    """24 to 64 random bytes in Base64 after a prefix; no two are the same."""
    found = {new_secret() for _ in range(50)}
    assert len(found) == 50
    assert all(each.startswith("whsec_") and 24 <= len(b64decode(each.removeprefix("whsec_"))) <= 64 for each in found)


def test_a_signature_of_the_specification() -> None:
    """Its own example."""
    signed = signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(st.text(max_size=50), st.text(st.characters(codec="ascii", exclude_characters="."), min_size=1, max_size=20))
def test_receivers_accept_what_is_signed(text: str, message_id: str) -> None:
    """With either secret while there are two, and with no other."""
    body, now_s = json.dumps({"text": text}, ensure_ascii=False).encode(), int(time.time())
    new, former, other = new_secret(), new_secret(), new_secret()
    headers = dict(signed_headers(message_id, now_s, body, [new, former]))
    for secret in (new, former):
        assert Webhook(secret).verify(body, headers) == {"text": text}
    with pytest.raises(WebhookVerificationError):
        Webhook(other).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new).verify(body + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new).verify(body, headers | {"webhook-id": message_id + "x"})
