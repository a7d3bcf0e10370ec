"""The clients themselves: their version and trust, and whether their hooks are heard from."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import which

import msgspec

from interlock.agents.hosts import recognition
from interlock.agents.hosts.host import Host
from interlock.app.context import has_store, open_app
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.hosts.probe import ask_until, last_line, run_with_timeout
from interlock.app.hosts.proofs import HOOK_SECONDS, PROBE_SESSION_PREFIX, Check
from interlock.app.hosts.toolsets import configured_toolsets
from interlock.core.counting import pluralise
from interlock.workspace.machine import clients, install_manifest, processes, spool

DAY_MS = 86_400_000
RUNS_MAX = 200


def check_version(host: Host, environment: Mapping[str, str]) -> list[Check]:
    """The client's version, and what it enforces."""
    program = which(host.program, path=environment.get("PATH"))
    if program is None:
        return []
    ran = run_with_timeout([program, "--version"], b"", Path("/"), environment, HOOK_SECONDS)
    words = [] if isinstance(ran, str) else last_line(ran.out).split()
    version = next((word for word in words if word[:1].isdigit()), "")
    what = f"{host.title} {version or '(which does not tell its version)'}: {host.enforcement}"
    if not host.is_tried:
        what += " (from its documentation, not tried)"
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    if host.fail_closed_since and numbers and numbers < host.fail_closed_since:
        known = ".".join(map(str, host.fail_closed_since))
        what = f"{host.title} {version}: a hook that takes too long lets the tool call pass"
        return [Check("client", what, f"Update it: {known} is known to block then.")]
    return [Check("client", what)]


def check_trust(host: Host, root: Path, environment: Mapping[str, str]) -> Iterator[Check]:
    """Whether the client runs our hooks at all, where the user has to allow that first."""
    told = _ask_client(host, environment)
    if host.trust_question(str(root)) and not told:
        yield Check("trust", f"{host.title} could not be asked whether it trusts the hooks")
    for what, hint in host.missing_trust(str(root), environment, told):
        yield Check("trust", what, hint)


def _ask_client(host: Host, environment: Mapping[str, str]) -> bytes:
    """The client's own words about its hooks; nothing if it says nothing."""
    program = which(host.program, path=environment.get("PATH"))
    question = host.trust_question(os.getcwd())
    if program is None or not question:
        return b""
    words, lines = question
    content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    mark = f'"id":{lines[-1]["id"]}'.encode()
    return ask_until(
        [program, *words], content, mark, environment=environment, seconds=HOOK_SECONDS
    )


def check_running(host: Host, home: Path, root: Path) -> Iterator[Check]:
    """Clients that run here, and whose hooks nobody has heard from; and old servers."""
    config = home / "config.toml"
    for process in processes.working_in(root):
        _, words = processes.terminal_and_words(process)
        name = recognition.client_name(process.name, words)
        if name != host.program and name not in host.packages:
            continue
        held = next(iter(clients.recall(home, process)), None)
        if held is None and not _is_part_of_known(home, process.pid):
            what = f"{host.title} runs here (process {process.pid}), but none of its hooks reported"
            yield Check("silent", what, f"Restart it, then check again. {_trust_hint(host)}")
        elif held and _has_toolsets(home) and config.stat().st_mtime * 1_000 > held.at_ms:
            what = f"`{config}` was changed after {host.title} began (process {process.pid})"
            yield Check("toolsets", what, "Restart it to get the toolsets that it names.")


def _trust_hint(host: Host) -> str:
    return host.after_install[0] if host.after_install else ""


def _is_part_of_known(home: Path, pid: int) -> bool:
    """Whether a client is only the beginning or a part of one whose hooks were heard from."""
    above = [process.pid for process in processes.ancestors(pid)]
    known = clients.look_for_clients(home)
    return any(
        held.pid in above or pid in [process.pid for process in processes.ancestors(held.pid)]
        for held in clients.all_clients(home)
        if (held.host, held.conversation) in known.held
    )


def _has_toolsets(home: Path) -> bool:
    try:
        return configured_toolsets(home) is not None
    except SettingsBroken:
        return False


def check_hooks_heard(
    host: Host, home: Path, root: Path, environment: Mapping[str, str], now_ms: int
) -> Check:
    """Whether the client's hooks have run while there was work."""
    since = now_ms - DAY_MS
    try:
        known_installs = install_manifest.load(home)
        for scope, place in (("project", root), ("user", Path.home())):
            if known := install_manifest.find_install(known_installs, host.name, scope, place):
                since = max(since, known.at_ms)
        if _was_heard(host, home, since):
            return Check("heard", "Hooks were heard of within the last day")
        count = _sessions_since(home, root, environment, since)
    except SettingsBroken as broken:
        return Check("heard", str(broken), "Correct the file, or move it away.")
    except StoreFailure as failure:
        return Check("heard", str(failure), failure.hint)
    if count:
        what = f"{pluralise(count, 'session')} ran here, but no hook of {host.title} reported"
        return Check("heard", what, f"Restart {host.title}. {_trust_hint(host)}".rstrip())
    return Check("heard", "No session ran here in the last day")


def _was_heard(host: Host, home: Path, since_ms: int) -> bool:
    if any(held.host == host.name and held.at_ms >= since_ms for held in clients.all_clients(home)):
        return True
    return any(
        line.host == host.name
        and line.at_ms >= since_ms
        and not line.host_session.startswith(PROBE_SESSION_PREFIX)
        for line in (*spool.lines(home), *spool.commands(home))
    )


def _sessions_since(home: Path, root: Path, environment: Mapping[str, str], since_ms: int) -> int:
    if not has_store(home, environment):
        return 0
    app = open_app(home)
    try:
        rows = app.reader.newest_runs(limit=RUNS_MAX)
    finally:
        app.close()
    recent = [row for row in rows if row.updated_ms >= since_ms]
    return len({row.session for row in recent if f"{row.workspace}/".startswith(f"{root}/")})
