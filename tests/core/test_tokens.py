"""Tokens: golden vectors, round trip, and every way in which one can be wrong."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core import bech32m, ids, tokens
from interlock.core.bech32m import CHARSET
from interlock.core.tokens import BadToken, SigningKey, Token, mint, read_token
from tests.scenes import KEY, refusal_code

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "tokens.json").read_text())
TOKEN = Token(ids.node_id(bytes(range(8))), ids.attempt_id(bytes(range(8, 13))))
TEXT = mint(TOKEN, KEY)
KEYS = {KEY.id: KEY}

raw_tokens = st.builds(
    Token,
    st.binary(min_size=8, max_size=8).map(ids.node_id),
    st.binary(min_size=5, max_size=5).map(ids.attempt_id),
)


@pytest.mark.parametrize("vector", GOLDEN["vectors"], ids=lambda vector: vector["token"])
def test_golden_vectors_never_change(vector: dict[str, str]) -> None:
    key = SigningKey(int(vector["keyId"]), bytes.fromhex(vector["secret"]), "current")
    token = Token(ids.NodeId(vector["node"]), ids.AttemptId(vector["attempt"]))

    assert mint(token, key) == vector["token"]
    assert read_token(vector["token"], {key.id: key}) == token


@pytest.mark.parametrize(("prefix", "text"), [("a", "a1lqfn3a"), ("?", "?1v759aa")])
def test_an_empty_payload_has_the_text_of_bip_350(prefix: str, text: str) -> None:
    assert bech32m.encode(prefix, b"") == text


@given(raw_tokens, st.integers(0, 65_535), st.binary(min_size=32, max_size=32))
def test_reading_what_was_minted_gives_the_token(token: Token, key_id: int, secret: bytes) -> None:
    key = SigningKey(key_id, secret, "current")
    text = mint(token, key)

    assert len(text) == tokens.TEXT_LENGTH
    assert read_token(text, {key_id: key}) == token


@pytest.mark.invariant("token-single-character")
@pytest.mark.parametrize("position", range(tokens.TEXT_LENGTH))
def test_a_single_wrong_character_is_noticed_and_named(position: int) -> None:
    others = [char for char in CHARSET + CHARSET.upper() + "bio1 -_é" if char != TEXT[position]]

    for char in others:
        fault = read_token(TEXT[:position] + char + TEXT[position + 1 :], KEYS)

        assert isinstance(fault, BadToken)
        assert (fault.code, f"character {position + 1} " in fault.error) == ("token_mangled", True)


@pytest.mark.invariant("token-single-character")
@given(st.data())
def test_a_lost_or_doubled_or_swapped_character_is_noticed(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(TEXT) - 2))
    swapped = TEXT[:at] + TEXT[at + 1] + TEXT[at] + TEXT[at + 2 :]
    wrong = [TEXT[:at] + TEXT[at + 1 :], TEXT[:at] + TEXT[at] + TEXT[at:]]
    wrong += [swapped] if swapped != TEXT else []

    assert {refusal_code(read_token(text, KEYS)) for text in wrong} == {"token_mangled"}


@given(st.text(max_size=60))
def test_any_other_text_is_a_mangled_token(text: str) -> None:
    assert refusal_code(read_token(text, KEYS)) == "token_mangled"


def with_payload(payload: bytes) -> str:
    return bech32m.encode(tokens.PREFIX, payload)


@pytest.mark.invariant("token-faults-told-apart")
def test_the_five_faults_are_told_apart() -> None:
    payload = bech32m.decode(tokens.PREFIX, TEXT, tokens.LENGTH)
    assert isinstance(payload, bytes)

    last = "q" if TEXT[-1] != "q" else "p"
    revoked = SigningKey(KEY.id, KEY.secret, "revoked")
    other = SigningKey(KEY.id, b"x" * 32, "current")

    mangled = read_token(TEXT[:-1] + last, KEYS)
    assert isinstance(mangled, BadToken)
    assert mangled.error == "The token was miscopied: character 48 looks wrong"
    assert refusal_code(read_token(TEXT, {})) == "token_other_store"
    assert refusal_code(read_token(TEXT, {KEY.id: revoked})) == "token_revoked"
    newer = with_payload(b"\x21" + payload[1:])
    assert refusal_code(read_token(newer, KEYS)) == "token_unknown_version"
    assert refusal_code(read_token(TEXT, {KEY.id: other})) == "token_forged"
    for changed in (payload[:-1] + bytes((payload[-1] ^ 1,)), payload[:5] + b"\0" + payload[6:]):
        assert refusal_code(read_token(with_payload(changed), KEYS)) == "token_forged"


def test_a_retired_key_still_verifies() -> None:
    assert read_token(TEXT, {KEY.id: SigningKey(KEY.id, KEY.secret, "retired")}) == TOKEN
