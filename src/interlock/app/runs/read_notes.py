"""Read what was handed in for earlier steps of a run. It gets a log that it can only read."""

from interlock.app.refusals import BadToken, NodeGone, NoSuchStep, UnhealthySession
from interlock.app.runs import past_outputs, token_target
from interlock.app.runs.token_target import TokenTarget
from interlock.core.session import answer_text
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.recap import ALL
from interlock.core.tokens import Token, mint
from interlock.store.keyring import Keyring
from interlock.store.log import LogReader


def read_notes(
    reader: LogReader, keyring: Keyring, *, token: str, step: str
) -> RenderedAnswer | BadToken | NodeGone | UnhealthySession | NoSuchStep:
    """Return the notes and artifacts of a step, or of all of them with the values."""
    with reader.snapshot():
        target = token_target.find_token_target(reader, token, keyring.keys())
        if not isinstance(target, TokenTarget):
            return target
        target = token_target.skip_answered_approval(reader, target)
        node = target.node
        found = past_outputs.outputs_of_step(reader, node, step)
        if isinstance(found, NoSuchStep):
            return found
        outputs, left_out = found
        values = past_outputs.values_at(reader, node) if step == ALL else {}
        attempt = token_target.unspent_attempt(reader, node.session, node.id, target.attempt)
    token = mint(Token(node.id, attempt), keyring.current())
    return answer_text.fill(
        answer_text.notes_answer(tuple(outputs), values, tuple(left_out)),
        prompt="",
        token=token,
        token_at=lambda _: token,
        session=node.session,
        run=node.run,
    )
