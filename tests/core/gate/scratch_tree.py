"""A small tree in which commands are really run, and what of it they have changed."""

import bz2
import contextlib
import gzip
import lzma
import os
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path

PROGRAMS = (
    "touch cat ls head wc cut grep diff sort uniq shuf tee dd sed awk find xargs env gzip gunzip"
    " bzip2 bunzip2 xz unxz tar base64 iconv xxd date git python3 jq file less hexdump comm zcat"
    " bash sh chmod ln rm nice timeout stdbuf setsid nohup true echo printf test zsh"
)
"""All that a command can run: nothing that could harm what is outside."""


class ScratchTree:
    """The directory that a command runs in, with its home and its temporary files inside."""

    def __init__(self, base: Path) -> None:
        self.base, self.work, self.bin = base, base / "work", base / "bin"
        self.bin.mkdir(parents=True)
        for name in PROGRAMS.split():
            if program := shutil.which(name, path="/usr/bin:/bin:/usr/local/bin"):
                (self.bin / name).symlink_to(program)
        self._make_pattern(base / "pattern")
        self._restore()

    def _make_pattern(self, work: Path) -> None:
        (work / "b").mkdir(parents=True)
        (work / "home").mkdir()
        (work / "tmp").mkdir()
        (work / "a").write_text("touch m\nada\n-delete\n")
        (work / "b" / "c").write_text("touch m\n")
        (work / "j.json").write_text('{"a": 1}\n')
        (work / "z.gz").write_bytes(gzip.compress(b"x\n"))
        (work / "z.bz2").write_bytes(bz2.compress(b"x\n"))
        (work / "z.xz").write_bytes(lzma.compress(b"x\n"))
        (work / "l").symlink_to("a")
        with tarfile.open(work / "a.tar", "w") as tar:
            tar.add(work / "b" / "c", "m")
        git = ["git", "-c", "user.name=a", "-c", "user.email=a", "-C", str(work)]
        for words in (["init", "-q", "--template="], ["add", "a"], ["commit", "-qm", "a"]):
            subprocess.run([*git, *words], check=True, env=self._environment())

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": str(self.bin),
            "HOME": str(self.work / "home"),
            "TMPDIR": str(self.work / "tmp"),
            "LC_ALL": "C.UTF-8",
            # Otherwise git may note in its index what it saw of the files' times.
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "diff.autoRefreshIndex",
            "GIT_CONFIG_VALUE_0": "false",
        }

    def _restore(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.base / "pattern", self.work, symlinks=True)
        self._before = self._snapshot()

    def _snapshot(self) -> dict[str, object]:
        """What there is: kind, mode, owner, links, size, time of the last change, content."""
        seen: dict[str, object] = {}
        pending = [str(self.work)]
        while pending:
            path = pending.pop()
            status = os.lstat(path)
            is_folder = os.path.isdir(path) and not os.path.islink(path)
            content = b""
            if is_folder:
                pending += [entry.path for entry in os.scandir(path)]
            elif os.path.islink(path):
                content = os.readlink(path).encode()
            else:
                content = Path(path).read_bytes()
            times = (status.st_mtime_ns, status.st_ctime_ns)
            owner = (status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_ino)
            seen[path] = (*owner, status.st_size, *times, content)
        return seen

    def changes(self, shell: str, text: str) -> list[str]:
        """The paths that a text changes, by name; afterwards everything is as before."""
        self._run(shell, text)
        after = self._snapshot()
        changed = {path for path, _ in self._before.items() ^ after.items()}
        if changed:
            self._restore()
        return sorted(path.removeprefix(f"{self.work}") or "." for path in changed)

    def _run(self, shell: str, text: str) -> None:
        """Let a shell run it, and end what is left of it: some texts wait for themselves."""
        with (self.work / "a").open() as stdin:
            process = subprocess.Popen(
                [shell, "-c", text],
                cwd=self.work,
                env=self._environment(),
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
