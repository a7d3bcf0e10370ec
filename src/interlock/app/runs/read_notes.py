"""Read what was handed in for earlier steps of a run. It gets a log that it can only read."""

from interlock.app.refusals import BadToken, NodeGone, NoSuchStep, UnhealthySession
from interlock.app.runs import past_outputs, token_target
from interlock.app.runs.token_target import TokenTarget
from interlock.core.session import answer_text
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.recap import ALL
from interlock.core.tokens import Token, mint
from interlock.store.keyring import Keyring
from interlock.store.log_reader import LogReader


def read_notes(
    reader: LogReader, keyring: Keyring, *, token: str, step: str
) -> RenderedAnswer | BadToken | NodeGone | UnhealthySession | NoSuchStep:
    """Return the notes and artifacts of a step, or of all of them with the values."""
    asked = token_target.find_token_target(reader, keyring, token)
    if not isinstance(asked, TokenTarget):
        return asked
    target = token_target.skip_answered_approval(reader, asked)
    node = target.node
    found = past_outputs.outputs_of_step(reader, node, step)
    if isinstance(found, NoSuchStep):
        return found
    outputs, left_out = found
    values = past_outputs.values_at(reader, node) if step == ALL else {}
    attempt = token_target.unspent_attempt(target.events, node.id, target.attempt)
    token = mint(Token(node.id, attempt), keyring.current())
    return answer_text.fill(
        answer_text.notes_answer(tuple(outputs), values, tuple(left_out)),
        prompt="",
        token=token,
        token_at=lambda _: token,
        session=node.session,
        run=node.run,
    )
