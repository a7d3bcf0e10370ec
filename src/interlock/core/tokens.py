"""Tokens: what an agent holds. A token names a node and an attempt, and is signed.

    byte 0      version (high half) and kind (low half)
    bytes 1-2   id of the key that signed it
    bytes 3-10  node
    bytes 11-15 attempt
    bytes 16-23 HMAC-SHA256 of the bytes before, cut to 8

Written as bech32m with the prefix `ct`: 48 characters, checkable without any look-up.
"""

import hmac
from collections.abc import Mapping
from typing import Literal

import msgspec

from interlock.core import bech32m, ids
from interlock.core.ids import AttemptId, NodeId
from interlock.core.refusal import PlainRefusal

PREFIX = "ct"
LENGTH = 24
TEXT_LENGTH = 48
_VERSION = 1
_KIND_CONTINUE = 1
_SIGNED_LENGTH = 16
_USE_NEWEST_TOKEN = "Use the continueToken of the newest answer, copied whole."


class SigningKey(msgspec.Struct, frozen=True):
    """A signing key. Only the current one signs; a retired one still verifies."""

    id: int
    secret: bytes
    state: Literal["current", "retired", "revoked"]


class Token(msgspec.Struct, frozen=True):
    node: NodeId
    attempt: AttemptId


class BadToken(PlainRefusal, frozen=True):
    """A token that names no node of this store; the code says why."""


def mint(token: Token, key: SigningKey) -> str:
    signed = b"".join(
        (
            bytes((_VERSION << 4 | _KIND_CONTINUE,)),
            key.id.to_bytes(2),
            ids.raw_bytes(token.node),
            ids.raw_bytes(token.attempt),
        )
    )
    return bech32m.encode(PREFIX, signed + _signature(signed, key))


def read_token(text: str, keys: Mapping[int, SigningKey]) -> Token | BadToken:
    payload = bech32m.decode(PREFIX, text, LENGTH)
    if isinstance(payload, bech32m.DamagedText):
        error = f"The token was miscopied: {payload.reason}"
        return BadToken("token_mangled", error, _USE_NEWEST_TOKEN)
    if payload[0] != _VERSION << 4 | _KIND_CONTINUE:
        return BadToken(
            "token_unknown_version",
            f"The token is of version {payload[0] >> 4}, which this Interlock does not know",
            "A newer Interlock made it: upgrade this one.",
        )
    key_id = int.from_bytes(payload[1:3])
    key = keys.get(key_id)
    if key is None:
        return BadToken(
            "token_other_store",
            "The token was made by another Interlock store",
            "Check that INTERLOCK_HOME is the one the token came from, or start again"
            " with `start_workflow`.",
        )
    if key.state == "revoked":
        return BadToken(
            "token_revoked",
            "The key that signed this token was revoked",
            "`resume_session` gives a new token for the same work.",
        )
    if not hmac.compare_digest(_signature(payload[:_SIGNED_LENGTH], key), payload[_SIGNED_LENGTH:]):
        error = "The token is well-formed but was not signed by this store"
        return BadToken("token_forged", error, _USE_NEWEST_TOKEN)
    return Token(ids.node_id(payload[3:11]), ids.attempt_id(payload[11:16]))


def _signature(signed: bytes, key: SigningKey) -> bytes:
    return hmac.digest(key.secret, signed, "sha256")[: LENGTH - _SIGNED_LENGTH]
