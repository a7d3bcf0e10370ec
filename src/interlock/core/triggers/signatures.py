"""The proofs that a webhook comes from who knows its secret: of GitHub, of GitLab, and of Standard
Webhooks, which GitLab signs by as well. All are about the body as it was sent, byte by byte.

Who holds no secret proves nothing: with an empty one everybody could sign, so it fits nothing.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["valid", "invalid", "stale"]

SECRET_PREFIX = b"whsec_"
"""How a secret begins that is for signing."""
AGE_SECONDS_MAX = 5 * 60
"""Of a signed message, and how far its sender's clock may be ahead."""
_SIGNATURES_MAX = 16  # one for each secret that is in use while they change
_TIMESTAMP_DIGITS_MAX = 12


def verify_github(secret: bytes, body: bytes, signature: str) -> bool:
    """Whether the header `X-Hub-Signature-256` is that of this body."""
    expected = f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"
    return bool(secret) and _is_same(expected, signature)


def verify_gitlab_token(secret: bytes, token: str) -> bool:
    """Whether the header `X-Gitlab-Token` is the secret itself. It proves nothing about a body."""
    return bool(secret) and hmac.compare_digest(secret, _to_bytes(token))


def verify_standard(
    secret: bytes, body: bytes, *, message_id: str, timestamp: str, signatures: str, now_s: int
) -> Verdict:
    """Judge the headers `webhook-id`, `webhook-timestamp` and `webhook-signature` of a body.

    `stale` is one that was signed with the secret too long ago, or for a time that is not yet.
    """
    if not (_is_message_id(message_id) and _is_timestamp(timestamp) and _key(secret)):
        return "invalid"
    expected = sign_standard(secret, body, message_id=message_id, timestamp=int(timestamp))
    candidates = signatures.split(" ", _SIGNATURES_MAX)[:_SIGNATURES_MAX]
    if not any(_is_same(expected, candidate) for candidate in candidates):
        return "invalid"
    return "valid" if abs(now_s - int(timestamp)) <= AGE_SECONDS_MAX else "stale"


def sign_standard(secret: bytes, body: bytes, *, message_id: str, timestamp: int) -> str:
    """Return the header `webhook-signature` for a message that is sent at this time."""
    content = b".".join((_to_bytes(message_id), str(timestamp).encode(), body))
    digest = hmac.new(_key(secret), content, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def _key(secret: bytes) -> bytes:
    """Return the bytes that sign: those that a secret stands for, if it has the standard form."""
    if not secret.startswith(SECRET_PREFIX):
        return secret
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        return secret


def _is_message_id(text: str) -> bool:
    # With a dot, one text could be signed that has two meanings.
    return bool(text) and text.isascii() and text.isprintable() and "." not in text


def _is_timestamp(text: str) -> bool:
    is_number = text.isascii() and text.isdigit() and len(text) <= _TIMESTAMP_DIGITS_MAX
    return is_number and str(int(text)) == text


def _is_same(expected: str, claimed: str) -> bool:
    return hmac.compare_digest(expected.encode(), _to_bytes(claimed))


def _to_bytes(header: str) -> bytes:
    return header.encode(errors="replace")
