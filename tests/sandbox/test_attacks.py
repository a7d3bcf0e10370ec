"""Shell texts and attempts that Claude Code runs, wrapped, change and reach nothing outside.

The texts are those that the reader of shell text is tested with, and some that use what is hostile
in the project. They run in the sandbox alone: each scene first checks that it confines them.
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock.app.gate import confined_commands
from interlock.core.gate.command.network_programs import DAEMON_CLIENTS, REMOTE_READERS
from interlock.core.gate.network_use import network_use
from interlock.core.gate.shell import analyse
from interlock.core.gate.state import Mode
from tests.child_process import processes_of
from tests.core.gate.test_shell import COMMANDS
from tests.effort import EFFORT
from tests.hooks.agent_shell import Shell
from tests.sandbox import test_refusals
from tests.sandbox.attempts import ATTEMPTS
from tests.sandbox.project import states_below
from tests.sandbox.test_refusals import PYTHON, World
from tests.unprivileged import NOBODY, place_of_nobody

pytestmark = test_refusals.pytestmark
SECONDS_MAX, BATCH, THREADS = "20", 200, 6
STEP = 100
"""`make test` runs every so many of the texts in each variant."""
# The launcher may need to read what is root's: its own code. What it confines loses this right.
_RIGHT = "+dac_read_search"
AS_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *(f"--inh-caps=-all,{_RIGHT}", f"--ambient-caps={_RIGHT}"),
)
PROGRAM = """#!PYTHON
import contextlib, socket
for path in ("OUTSIDE/canary", "canary"):
    with contextlib.suppress(OSError):
        open(path, "w")
for family, address in TARGETS:
    with contextlib.suppress(OSError):
        socket.socket(family).connect(address)
"""
FILES = {
    **dict.fromkeys(("a", "b", "c", "log", "names", "x.json", "build/a", "src/a.py"), "{}\n"),
    **dict.fromkeys(("ls", "rm", "bin/cat", "convert", "script.sh"), "#!/bin/sh\nexec HOSTILE\n"),
    **dict.fromkeys(("pip/__main__.py", "conftest.py"), "import os; os.system('HOSTILE')\n"),
    "Makefile": "all:\n\t@HOSTILE\n",
    "package.json": json.dumps({"scripts": dict.fromkeys(("build", "test", "install"), "HOSTILE")}),
    ".npmrc": "git=HOSTILE\nscript-shell=HOSTILE\n",
    "../user/.wgetrc": "tries = 1\n",
}
REPOSITORY = """
git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm one
tar cf a.tar b; tar czf a.tgz b; gzip -k a; echo 'a diff=hostile filter=hostile' > .gitattributes
ln -s HOSTILE .git/hooks/pre-commit && ln -s HOSTILE .git/hooks/post-checkout
for key in core.fsmonitor core.sshCommand core.pager diff.hostile.textconv filter.hostile.clean
do git config $key HOSTILE; done
git remote add origin https://unknown.invalid/a
"""
OWN_FILES = re.compile(r"interlock(/scratch(/.*)?)?|temporary(/claude-\w+-cwd)?")
LOCAL = re.compile(r"localhost|127\.|::1")
PUBLIC = "curl -s http://unknown.invalid"
HOSTILE_TEXTS = (
    *("make", "npm test", "git status", "git diff", "git log -p", "./convert", "sh script.sh"),
    *("git commit -qam two", "git checkout -b c", "python3 -m pip index versions a", "docker ps"),
    *("curl -s http://localhost:8080", "cd .. && chmod -R 777 .", "rm -rf ../outside .git"),
    *("git ls-remote ssh://localhost:8080/a", "git ls-remote http://127.0.0.1:8080/a", "make &"),
    *("npm view http://localhost:8080/a.tgz", "interlock mode coding && make"),
    *("setsid sh -c 'make; sleep 60' &>/dev/null &", "interlock check", "interlock worktrees list"),
)
TEXTS = [PUBLIC, *HOSTILE_TEXTS, *(text for text in COMMANDS if text.strip() and "\0" not in text)]
CHANGING = ("touch a", "chmod +x a", "sed -i s/a/b/ a", "git add .", "make", "ls; rm a")
"""Texts that are harmless without the sandbox, and change something each."""


class Variant(NamedTuple):
    mode: Mode
    agrees: bool
    """Whether the user lets remote readers use the network."""
    is_ordinary: bool


class Scene(World):
    """A hostile project with a session, and what commands in it could change or reach."""

    def __init__(self, base: Path, variant: Variant) -> None:
        super().__init__(base, is_ordinary=variant.is_ordinary and os.geteuid() == 0)
        self.agrees = variant.agrees
        self.shell = Shell(base / "interlock", base)
        self.shell.begin(variant.mode)
        as_user = () if self.user is None else AS_NOBODY
        self.shell.prefix = (*as_user, "timeout", "-k", "1", SECONDS_MAX)
        self.ran: list[subprocess.CompletedProcess[str]] = []
        self.asked: list[str] = []
        self._write_project(base / "bin" / "hostile")
        self.servers["proxy"] = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve_as_proxy, daemon=True).start()
        if self.user is not None:
            subprocess.run(["chown", "-Rh", f"{NOBODY}:{NOBODY}", base], check=True)

    def _serve_as_proxy(self) -> None:
        """Be the proxy of the user: record what is asked for, and answer nothing."""
        with suppress(OSError):
            while True:
                with self.servers["proxy"].accept()[0] as connection:
                    self.asked.append(connection.recv(65536).decode("latin-1").split("\r")[0])

    def _write_project(self, hostile: Path) -> None:
        hostile.parent.mkdir()
        targets = [(int(server.family), server.getsockname()) for server in self.servers.values()]
        program = PROGRAM.replace("PYTHON", PYTHON).replace("OUTSIDE", str(self.outside))
        hostile.write_text(program.replace("TARGETS", repr(targets)))
        hostile.chmod(0o755)
        missing = {name for name in REMOTE_READERS if not shutil.which(name)}
        for name in {"interlock", *DAEMON_CLIENTS, *missing}:
            hostile.with_name(name).symlink_to(hostile)
        for name, content in FILES.items():
            path = self.shell.project / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content.replace("HOSTILE", str(hostile)))
            path.chmod(0o755 if content.startswith("#!") else 0o644)
        script = REPOSITORY.replace("HOSTILE", str(hostile))
        subprocess.run(["sh", "-ec", script], cwd=self.shell.project, check=True)

    def run(self, *words: str, **_: Any) -> subprocess.CompletedProcess[str]:
        done = self.run_text(shlex.join(words))
        # The text joins commands, so one may have failed unseen: the sandbox says why, rightly.
        done.stderr = re.sub(
            r"\Ainterlock: this command ran read-only because .*\n", "", done.stderr
        )
        return done

    def run_text(self, text: str) -> subprocess.CompletedProcess[str]:
        return self.shell.run(
            text,
            PATH=f"{self.base}/bin:{os.environ['PATH']}",
            HOME=str(self.base / "user"),
            INTERLOCK_HOME=str(self.shell.home),
            https_proxy=f"http://127.0.0.1:{self.servers['proxy'].getsockname()[1]}",
            PIP_RETRIES="0",
        )

    def state(self) -> dict[str, object]:
        """What must stay as it is: all but the scratch directory and the client's own files."""
        files: dict[str, object] = {
            path: state
            for path, state in states_below(self.base).items()
            if not OWN_FILES.fullmatch(path)
        }
        asked = [line for line in self.asked if not self.agrees or LOCAL.search(line)]
        reached = dict.fromkeys((*asked, *self.heard), "reached")
        others = (self.victim.poll(), socket.gethostname(), os.path.lexists("/etc/a"))
        return files | reached | {"others": others}

    def changes(self, texts: Sequence[str]) -> list[str]:
        """Run the texts, several at a time. Return what they changed and reached, and left."""
        port = str(self.address["tcp"])  # of a listener of ours, in place of those that they name
        aimed = [text.replace("https://example.com", f"http://127.0.0.1:{port}") for text in texts]
        aimed = [re.sub(r"(?<=[:/])(8080|8000|6379|\$PORT)\b", port, text) for text in aimed]
        for text in aimed if self.agrees else ():
            use = network_use(analyse(text))
            if use is not None and use.kind == "remote":
                given = (self.shell.home, "claude-code", "host-1", text)
                confined_commands.record_question(*given)  # as the hook does
                confined_commands.accept_run(*given)  # as the shell does
        before = self.state()
        with ThreadPoolExecutor(THREADS) as pool:
            self.ran = [*pool.map(self.run_text, aimed)]
        after = self.state()
        changed = sorted(key for key in before | after if before.get(key) != after.get(key))
        return changed + [f"process {number}" for number in processes_of(str(self.base))]


@contextmanager
def scene_of(variant: Variant) -> Generator[Scene]:
    with place_of_nobody() as base, closing(Scene(base, variant)) as scene:
        if variant.mode != "coding":
            probe = scene.run_text("echo $INTERLOCK_SANDBOX; touch a")
            assert (probe.returncode, probe.stdout) == (1, "read-only\n"), "it is not confined"
        yield scene


def harm_by(texts: Sequence[str], variant: Variant) -> list[tuple[str, list[str]]]:
    """Run the texts. Return those that changed or reached something, with what that was."""
    with scene_of(variant) as scene:
        changes = scene.changes(texts)
        assert not variant.agrees or PUBLIC not in texts or scene.asked, "nothing was reached"
        for text, done in zip(texts, scene.ran, strict=True):
            was_confined = done.returncode == 0 or "interlock: this command ran" in done.stderr
            assert was_confined or text.startswith("interlock "), (text, done)
    if not changes or len(texts) == 1:
        return [(text, changes) for text in texts if changes]
    half = len(texts) // 2
    found = [*harm_by(texts[:half], variant), *harm_by(texts[half:], variant)]
    return found or [("several together", changes)]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("number", "variant"),
    [
        (0, Variant("analysis", agrees=True, is_ordinary=False)),
        (1, Variant("planning", agrees=False, is_ordinary=False)),
        (0, Variant("analysis", agrees=False, is_ordinary=True)),
        (1, Variant("planning", agrees=True, is_ordinary=True)),
    ],
    ids=str,
)
def test_no_text_changes_or_reaches_anything_outside(number: int, variant: Variant) -> None:
    few = [PUBLIC, *HOSTILE_TEXTS[number::2], *TEXTS[number::STEP]]
    tried = TEXTS if EFFORT == "long" else few
    for start in range(0, len(tried), BATCH):
        assert harm_by(tried[start : start + BATCH], variant) == []


@pytest.mark.parametrize("is_ordinary", [False, True])
def test_no_attempt_succeeds_as_a_command(*, is_ordinary: bool) -> None:
    with scene_of(Variant("planning", agrees=False, is_ordinary=is_ordinary)) as scene:
        before = scene.state()

        assert scene.attempt(ATTEMPTS) == set()
        assert scene.state() == before


def test_without_the_sandbox_the_same_texts_change_and_reach_everything() -> None:
    """This shows that the other tests would notice."""
    assert set(CHANGING) <= set(TEXTS)
    with scene_of(Variant("coding", agrees=False, is_ordinary=False)) as scene:
        assert [text for text in CHANGING if not scene.changes([text])] == []
        assert {"tcp", "tcp6", "unix", "abstract"} <= set(scene.heard)
