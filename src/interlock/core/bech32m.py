"""Bech32m (BIP-350): text with a checksum that detects a wrong character and says which it was.

The 90-character limit of the BIP guarantees that up to three wrong characters are detected; our
tokens have 48.
"""

from functools import reduce

import msgspec

CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
CHECKSUM_LENGTH = 6
_RESIDUE = 0x2BC830A3
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
# The feedback into the register for each value of the five bits that leave it at the top.
_FEEDBACK = tuple(
    reduce(lambda a, b: a ^ b, (g for bit, g in enumerate(_GENERATOR) if top >> bit & 1), 0)
    for top in range(32)
)
_VALUE = {char: value for value, char in enumerate(CHARSET)}


class DamagedText(msgspec.Struct, frozen=True):
    """The text is not what was written. `position` counts from 1; None where it is unknown."""

    position: int | None
    reason: str


def encode(prefix: str, payload: bytes) -> str:
    values = _regroup(payload)
    residue = _polymod(_expand_prefix(prefix) + values + [0] * CHECKSUM_LENGTH) ^ _RESIDUE
    checksum = [(residue >> 5 * (5 - i)) & 31 for i in range(CHECKSUM_LENGTH)]
    return f"{prefix}1" + "".join(CHARSET[value] for value in values + checksum)


def decode(prefix: str, text: str, payload_length: int) -> bytes | DamagedText:
    """Return the payload of `text`, which must have this prefix and carry this many bytes."""
    head = f"{prefix}1"
    data_length = -(-payload_length * 8 // 5)
    length = len(head) + data_length + CHECKSUM_LENGTH
    if len(text) != length:
        return DamagedText(None, f"it has {len(text)} characters instead of {length}")
    for position, (char, expected_char) in enumerate(zip(text, head, strict=False), start=1):
        if char != expected_char:
            return DamagedText(
                position, f"character {position} is `{char}` where `{expected_char}` belongs"
            )
    values: list[int] = []
    for position, char in enumerate(text[len(head) :], start=len(head) + 1):
        if char not in _VALUE:
            return DamagedText(position, f"character {position} (`{char}`) cannot occur in a token")
        values.append(_VALUE[char])
    error = _polymod(_expand_prefix(prefix) + values) ^ _RESIDUE
    if error:
        return _locate_error(error, len(values), offset=len(head))
    return _payload_bytes(values[:data_length], payload_length)


def _locate_error(error: int, length: int, *, offset: int) -> DamagedText:
    # The checksum is linear, so each single wrong character leaves its own trace in it: the
    # difference at the last character, shifted left once for every character that follows.
    for difference in range(1, 32):
        trace = difference
        for places_from_end in range(length):
            if trace == error:
                position = offset + length - places_from_end
                return DamagedText(position, f"character {position} looks wrong")
            trace = _shift_residue(trace)
    return DamagedText(None, "more than one character is wrong")


def _shift_residue(residue: int) -> int:
    return (residue & 0x1FFFFFF) << 5 ^ _FEEDBACK[residue >> 25]


def _polymod(values: list[int]) -> int:
    residue = 1
    for value in values:
        residue = (residue & 0x1FFFFFF) << 5 ^ _FEEDBACK[residue >> 25] ^ value
    return residue


def _expand_prefix(prefix: str) -> list[int]:
    return [ord(char) >> 5 for char in prefix] + [0] + [ord(char) & 31 for char in prefix]


def _regroup(payload: bytes) -> list[int]:
    bits = len(payload) * 8
    padding = -bits % 5
    number = int.from_bytes(payload) << padding
    return [(number >> shift) & 31 for shift in range(bits + padding - 5, -1, -5)]


def _payload_bytes(values: list[int], payload_length: int) -> bytes | DamagedText:
    number = 0
    for value in values:
        number = number << 5 | value
    padding = len(values) * 5 - payload_length * 8
    if number & ((1 << padding) - 1):
        return DamagedText(None, "it was not written by Interlock")
    return (number >> padding).to_bytes(payload_length)
