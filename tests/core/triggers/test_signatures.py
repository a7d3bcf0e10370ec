"""The proofs that a webhook is genuine: published examples, and everything that is almost right."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.triggers.signatures import (
    Verdict,
    sign_standard,
    verify_github,
    verify_gitlab_token,
    verify_standard,
)

GITHUB_SECRET = b"It's a Secret to Everybody"
GITHUB_BODY = b"Hello, World!"
GITHUB_DIGEST = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
"""The example in GitHub's documentation."""

SECRET = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE = "msg_p5jXN8AQM9LWM0D4loKWxJek"
AT = 1_614_265_330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
"""The example of the libraries of Standard Webhooks."""
OTHER = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="


@pytest.mark.parametrize(
    ("secret", "body", "signature", "is_genuine"),
    [
        (GITHUB_SECRET, GITHUB_BODY, f"sha256={GITHUB_DIGEST}", True),
        (GITHUB_SECRET, GITHUB_BODY + b" ", f"sha256={GITHUB_DIGEST}", False),
        (b"another", GITHUB_BODY, f"sha256={GITHUB_DIGEST}", False),
        (GITHUB_SECRET, GITHUB_BODY, GITHUB_DIGEST, False),
        (GITHUB_SECRET, GITHUB_BODY, f"sha1={GITHUB_DIGEST}", False),
        (GITHUB_SECRET, GITHUB_BODY, "sha256=", False),
        (GITHUB_SECRET, GITHUB_BODY, "", False),
        (GITHUB_SECRET, GITHUB_BODY, f"sha256={GITHUB_DIGEST}é", False),
    ],
)
def test_a_webhook_of_github_proves_the_secret_and_the_body(
    *, secret: bytes, body: bytes, signature: str, is_genuine: bool
) -> None:
    assert verify_github(secret, body, signature) is is_genuine


@pytest.mark.parametrize(
    ("secret", "token", "is_genuine"),
    [
        (b"s3cret", "s3cret", True),
        (b"s3cret", "s3cret ", False),
        (b"s3cret", "", False),
        ("sécret".encode(), "sécret", True),
        (b"s3cret", "\udc80", False),
    ],
)
def test_a_webhook_of_gitlab_shows_the_secret(
    *, secret: bytes, token: str, is_genuine: bool
) -> None:
    assert verify_gitlab_token(secret, token) is is_genuine


def test_a_standard_webhook_is_signed_as_the_published_libraries_do() -> None:
    assert sign_standard(SECRET, BODY, message_id=MESSAGE, timestamp=AT) == SIGNATURE


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "valid"),
        ({"signatures": f"v2,xyz {OTHER} {SIGNATURE}"}, "valid"),
        ({"signatures": f"{OTHER} v1a,{SIGNATURE[3:]}"}, "invalid"),
        ({"signatures": SIGNATURE[3:]}, "invalid"),
        ({"signatures": "v1,"}, "invalid"),
        ({"signatures": ""}, "invalid"),
        ({"signatures": f"{OTHER} " * 16 + SIGNATURE}, "invalid"),
        ({"body": BODY + b" "}, "invalid"),
        ({"message_id": "msg_other"}, "invalid"),
        ({"message_id": ""}, "invalid"),
        ({"timestamp": str(AT + 1)}, "invalid"),
        ({"timestamp": f"0{AT}"}, "invalid"),
        ({"timestamp": f"{AT} "}, "invalid"),
        ({"timestamp": "-1"}, "invalid"),
        ({"timestamp": "9" * 5000}, "invalid"),
        ({"timestamp": ""}, "invalid"),
        ({"now_s": AT + 300}, "valid"),
        ({"now_s": AT + 301}, "stale"),
        ({"now_s": AT - 300}, "valid"),
        ({"now_s": AT - 301}, "stale"),
        ({"now_s": AT + 301, "signatures": OTHER}, "invalid"),
    ],
)
def test_a_standard_webhook_proves_its_secret_id_time_and_body(
    changes: dict[str, str], verdict: Verdict
) -> None:
    headers = {"message_id": MESSAGE, "timestamp": str(AT), "signatures": SIGNATURE}
    arguments: dict[str, object] = {"body": BODY, "now_s": AT, **headers, **changes}

    assert verify_standard(SECRET, **arguments) == verdict  # type: ignore[arg-type]


def test_a_message_id_with_a_dot_is_refused_though_it_is_signed() -> None:
    """`a.1` sent at 2 and `a` sent at 1 with `2.` in its body would be signed alike."""
    signature = sign_standard(SECRET, BODY, message_id="msg.1", timestamp=AT)

    verdict = verify_standard(
        SECRET, BODY, message_id="msg.1", timestamp=str(AT), signatures=signature, now_s=AT
    )

    assert verdict == "invalid"


@pytest.mark.parametrize("secret", [b"plain text", b"whsec_not base64"])
def test_a_secret_of_another_form_signs_as_it_is(secret: bytes) -> None:
    signature = sign_standard(secret, BODY, message_id=MESSAGE, timestamp=AT)
    standard = b"whsec_" + base64.b64encode(secret)

    assert signature == sign_standard(standard, BODY, message_id=MESSAGE, timestamp=AT)


@pytest.mark.parametrize("secret", [b"", b"whsec_"])
def test_an_empty_secret_proves_nothing(secret: bytes) -> None:
    signature = sign_standard(b"", BODY, message_id=MESSAGE, timestamp=AT)

    verdict = verify_standard(
        secret, BODY, message_id=MESSAGE, timestamp=str(AT), signatures=signature, now_s=AT
    )

    assert verdict == "invalid"
    assert not verify_gitlab_token(b"", "")
    assert not verify_github(
        b"", b"", "sha256=b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
    )


@given(st.binary(), st.tuples(st.text(), st.text(), st.text()), st.integers())
def test_nothing_that_is_sent_makes_a_check_fail_or_pass(
    body: bytes, headers: tuple[str, str, str], now_s: int
) -> None:
    message_id, timestamp, signatures = headers

    verdict = verify_standard(
        SECRET,
        body,
        message_id=message_id,
        timestamp=timestamp,
        signatures=signatures,
        now_s=now_s,
    )

    assert verdict == "invalid"
    assert not verify_github(SECRET, body, signatures)
    assert not verify_gitlab_token(SECRET, signatures)
