"""Read a token that somebody holds, and find the node that it names."""

import msgspec

from interlock.core import ids, tokens
from interlock.core.session.nodes import (
    advance_prefix,
    approval_key,
    approval_resolved_key,
    validation_key,
)
from interlock.core.tokens import BadToken, Token
from interlock.store import queries
from interlock.store.keyring import Keyring
from interlock.store.log_reader import LogReader
from interlock.store.records import LocatedNode, RunLine

NODE_GONE = BadToken(
    "node_gone",
    "The session of this token is no longer in the store",
    "It was deleted. `resume_session` lists the existing work.",
)


class HeldToken(msgspec.Struct, frozen=True):
    token: Token
    located: LocatedNode
    """The node that it names, with the events that are about that node."""
    line: RunLine | None = None
    """The way to the node, if that was asked for."""


def find_held_token(
    reader: LogReader, keyring: Keyring, token: str, *, line_steps: int = 0
) -> HeldToken | BadToken:
    """`line_steps`: read the way to the node as well, with so many steps."""
    keys = keyring.keys()
    parsed = tokens.read_token(token, keys)
    if isinstance(parsed, BadToken) and parsed.code == "token_other_store":
        keyring.refresh()  # another process may have made its key a moment ago
        keys = keyring.keys()
        parsed = tokens.read_token(token, keys)
    if isinstance(parsed, BadToken):
        return parsed
    located, line = locate_node(reader, parsed, line_steps=line_steps)
    # Whatever was read brings news of the keys along: this one may have been revoked.
    if keyring.keys() is not keys:
        parsed = tokens.read_token(token, keyring.keys())
        if isinstance(parsed, BadToken):
            return parsed
    return HeldToken(parsed, located, line) if located else NODE_GONE


def locate_node(
    reader: LogReader, token: Token, *, line_steps: int
) -> tuple[LocatedNode | None, RunLine | None]:
    """Read a node, the events that are about it, and the way to it if that has any steps."""
    node, approval = token.node, ids.approval_id(token.node)
    keys = (validation_key(node), approval_key(approval), approval_resolved_key(approval))
    question = queries.node_location(node, prefix=advance_prefix(node), keys=keys)
    if not line_steps:
        return reader.ask(question), None
    return reader.ask(question, queries.line_to(node, steps=line_steps))
