"""The words with which a result is delivered: of a request, and of a comment.

Most of them are a model's, and some of strangers, whose words the model has read. They are bounded,
hold no secret of a known shape, cannot pretend to be the mark by which we find again what we have
written, and command nobody: a line that begins with a slash is an order to some forges and bots,
and so is a name behind an `@`.
"""

import re
from collections.abc import Container

from interlock.core.ids import SessionId
from interlock.core.session.secrets import redact_secrets
from interlock.core.unattended.handed_work import HandedWork
from interlock.core.unattended.order import UnattendedOrder, UnattendedState
from interlock.core.visible_text import make_visible, one_line
from interlock.core.workflow.handoff_artifacts import CodingHandoffArtifact
from interlock.core.workflow.packs import ReviewFinding, ReviewVerdictArtifact

TITLE_CHARS_MAX, ITEM_CHARS_MAX, TEXT_CHARS_MAX = 120, 600, 20_000
ITEMS_MAX = 50
WHOLE_CHARS_MAX = 60_000  # forges take a little more
_ORDERS = re.compile(r"^((?:[^\S\n]|[>*+-])*)/", re.MULTILINE)
_TESTS = re.compile(
    r"(^|/)(tests?|specs?|__tests__)/|(^|/)(test_[^/]*|conftest)\.py$|[._-](test|spec|tests)\.\w+$"
)
_MENTIONS = re.compile(r"(?<![\w.])@(?=[\w])")


def marker_of(session: SessionId) -> str:
    """The mark by which a request or comment of a session is recognised. Readers do not see it."""
    return f"<!-- interlock:{session} -->"


def request_title(order: UnattendedOrder) -> str:
    return _clean_line(order.goal.strip().partition("\n")[0])[:TITLE_CHARS_MAX] or order.workflow


def request_description(session: SessionId, state: UnattendedState, handed: HandedWork) -> str:
    body = _handoff_text(handed.handoff) if handed.handoff else clean_text(handed.notes)
    parts = (clean_text(state.order.goal), _proof_text(state, handed), body)
    return _with_marker(session, state.order, "\n\n".join(filter(None, parts)))


def comment_text(session: SessionId, state: UnattendedState, handed: HandedWork) -> str:
    if handed.verdict:
        body = _verdict_text(handed.verdict, handed.missing_places)
    elif handed.handoff:
        body = _handoff_text(handed.handoff)
    else:
        body = clean_text(handed.notes) or "The work is done; it has left no notes."
    parts = (_proof_text(state, handed), body)
    return _with_marker(session, state.order, "\n\n".join(filter(None, parts)))


def clean_text(text: str) -> str:
    """Return text of others as it may be shown to everybody who reads the forge."""
    shown = redact_secrets(make_visible(text)).replace("<!--", "&lt;!--")
    shown = shown.replace("![", "!\\[")  # whoever reads it would load the picture from anywhere
    bounded = shown if len(shown) <= TEXT_CHARS_MAX else f"{shown[:TEXT_CHARS_MAX]}\n\n(cut off)"
    return _MENTIONS.sub("@\u200b", _ORDERS.sub(r"\1\\/", bounded.strip()))


def _clean_line(text: str) -> str:
    return one_line(clean_text(text))[:ITEM_CHARS_MAX]


def _with_marker(session: SessionId, order: UnattendedOrder, body: str) -> str:
    origin = f"Written by unattended work (`{order.workflow}`, {session}). Nobody has looked at it."
    return f"{body[:WHOLE_CHARS_MAX]}\n\n---\n{origin}\n{marker_of(session)}\n"


def _proof_text(state: UnattendedState, handed: HandedWork) -> str:
    """Return the lines about proofs; nothing for work that has changed nothing."""
    lines = [f"- {_as_code(proof.command)}: {proof.end}" for proof in state.proofs]
    if state.outcome == "unverified":
        lines.append(f"**Unverified**: {_clean_line(state.detail)}")
    files = handed.handoff.files_changed if handed.handoff else ()
    changed = [_as_code(file) for file in files if is_test(file)]
    if lines and changed:
        lines.append(f"- Changed tests: {', '.join(changed[:ITEMS_MAX])}")
    return "\n".join(("### Proof", "", *lines)) if lines else ""


def is_test(path: str) -> bool:
    """Whether a file is a test by its name: a change of it may be what makes a proof pass."""
    return bool(_TESTS.search(path))


def _handoff_text(handoff: CodingHandoffArtifact) -> str:
    corrected = [
        f"{one.assumed}; in fact: {one.actual}" for one in handoff.corrected_assumptions or ()
    ]
    parts = (
        _listing("Decisions", handoff.key_decisions),
        _listing("Known limitations", handoff.known_limitations),
        _listing("Corrected assumptions", corrected),
        _listing("Tests", handoff.tests_added),
        _listing("Files", [_as_code(file) for file in handoff.files_changed]),
    )
    return "\n\n".join(filter(None, parts))


def _verdict_text(verdict: ReviewVerdictArtifact, missing: Container[str]) -> str:
    head = f"**Review: {verdict.verdict}** (confidence: {verdict.confidence})"
    findings = [_finding_line(finding, missing) for finding in verdict.findings]
    parts = (head, clean_text(verdict.summary), _listing("Findings", findings))
    return "\n\n".join(filter(None, parts))


def _finding_line(finding: ReviewFinding, missing: Container[str]) -> str:
    place = f", {_as_code(finding.place)}" if finding.place else ""
    if finding.place in missing:
        place += " (there is no such place)"
    must = ", must be fixed" if finding.must_fix else ""
    return f"**{finding.severity}**{must}{place}: {finding.summary}"


def _listing(title: str, items: "list[str] | tuple[str, ...]") -> str:
    lines = [f"- {_clean_line(item)}" for item in items[:ITEMS_MAX]]
    if len(items) > ITEMS_MAX:
        lines.append(f"- and {len(items) - ITEMS_MAX} more")
    return "\n".join((f"### {title}", "", *lines)) if lines else ""


def _as_code(text: str) -> str:
    return f"`{text.replace('`', '')}`"
