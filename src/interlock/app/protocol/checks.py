"""Check files of a project by rules. Each rule has an id and tells how to fix what it finds."""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.sessions.logbook_file import SessionLog, load_session_log, render_region
from interlock.core.git_names import is_commit
from interlock.core.ids import SessionId
from interlock.core.protocol import logbook
from interlock.core.protocol.end_facts import tells_what_was_done
from interlock.core.protocol.logbook import LogbookRegion
from interlock.core.session.events import ModeChanged
from interlock.core.session.protocol_events import SessionCompleted
from interlock.core.views import session_log_rule
from interlock.core.views.session_log_rule import KnownSession, RuleFinding, check_logbook
from interlock.workspace.files.regular_file import read_regular_file
from interlock.workspace.git.commits import is_reachable
from interlock.workspace.projects import logbooks

RULES = {session_log_rule.RULE: session_log_rule.FIX}
"""The rules that there are, and how to fix what each of them finds."""
BYTES_MAX = 4 * 1024 * 1024


class CheckReport(msgspec.Struct, frozen=True, rename="camel"):
    rule: str
    checked: tuple[str, ...]
    findings: tuple[RuleFinding, ...]


def check_logbooks(app: App, root: Path, paths: tuple[Path, ...]) -> CheckReport:
    """Check these logbooks, or all of the project at `root`.

    Raises:
        SettingsBroken: the config of a project cannot be used.
    """
    chosen = paths or tuple(root / path for path in reversed(logbooks.list_logbooks(root)))
    shown = [str(path.relative_to(root) if path.is_relative_to(root) else path) for path in chosen]
    findings: list[RuleFinding] = []
    for path, name in zip(chosen, shown, strict=True):
        try:
            text = read_regular_file(path, BYTES_MAX).decode("utf-8", "surrogateescape")
        except OSError as error:
            problem = f"it cannot be read: {error.strerror}"
            findings.append(
                RuleFinding(session_log_rule.RULE, name, 0, problem, "Make it readable.")
            )
            continue
        findings += check_logbook(name, text, _known_session(app, text))
    return CheckReport(session_log_rule.RULE, tuple(shown), tuple(findings))


def logbook_problems(app: App, session: SessionId, path: str) -> tuple[str, ...]:
    """Return the rule's findings in a session's logbook; none without a logbook."""
    if not path:
        return ()
    log = load_session_log(app.reader, session)
    found = check_logbooks(app, log.root, (log.root / path,)).findings
    return tuple(f"{one.path}:{one.line}: {one.problem}" for one in found)


def _known_session(app: App, text: str) -> KnownSession | None:
    region = logbook.find_region(text)
    if region is None or region.session not in app.reader.find_session(region.session):
        return None
    return _known_facts(load_session_log(app.reader, region.session), region)


def _known_facts(log: SessionLog, region: LogbookRegion) -> KnownSession:
    # Nobody can have written a region after fewer events than make an attended session.
    earlier = log.envelopes[: region.version]
    is_attended = any(isinstance(one.event, ModeChanged) for one in earlier)
    is_possible = is_attended and region.version <= len(log.envelopes)
    rendered = render_region(log, region.version if is_possible else None)
    ends = [one.event for one in log.envelopes if isinstance(one.event, SessionCompleted)]
    commit = ends[-1].commit if ends else ""
    is_lost = is_commit(commit) and is_reachable(log.root, commit) is False
    return KnownSession(
        rendered,
        is_open=log.state.status != "ended",
        says_what_was_done=tells_what_was_done(log.envelopes),
        unreachable_commit=commit if is_lost else "",
    )
