"""A project to run everyday commands in: real files of many ecosystems, made without network.

It always stands at the same path, because outputs name it: a copy of how it was made is kept beside
it, and put back whenever a command has changed something.
"""

import csv
import gzip
import io
import json
import lzma
import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FILES: dict[str, str] = tomllib.loads(
    Path(__file__).with_name("project_files.toml").read_text(encoding="utf-8")
)
ITEMS = ("tea", "coffee", "paper")
CUSTOMERS = ("Ada", "Grace", "Edsger", "Barbara")
OF_THE_TEST_RUN = ("PYTEST_", "INTERLOCK_", "GIT_", "PYTHON", "COV_", "VIRTUAL_ENV")
"""What the environment of a test run holds and that of an agent's shell does not."""


class FileState(NamedTuple):
    mode: int
    link_count: int
    size: int
    mtime_ns: int
    ctime_ns: int
    """When anything about the file was last changed. No program can set it, so it also stands for
    the content, where links lead, owners, and what was changed and changed back."""


class EverydayProject:
    """The project and a home of its user, in a place of their own."""

    def __init__(self, place: Path) -> None:
        self.live = place / "live"
        self.folder = self.live / "shop"
        self.home = self.live / "home"
        self._original = place / "original"
        temporary = place / "temporary"
        temporary.mkdir()
        self.environment = {
            **_environment(self.home),
            "INTERLOCK_HOME": str(place / "interlock"),
            "TMPDIR": str(temporary),
        }
        _write_home(self.home)
        _write_files(self.folder)
        _write_data(self.folder)
        _write_archives(self.folder)
        _compile(self.folder, self.environment)
        _write_history(self.folder, self.environment)
        shutil.copytree(self.live, self._original, symlinks=True)
        self._states = states_below(self.live)

    def restore(self) -> list[str]:
        """Put everything back as it was made. Return the paths that had changed."""
        now, before = states_below(self.live), self._states
        changes = sorted(path for path in now | before if now.get(path) != before.get(path))
        if changes:
            shutil.rmtree(self.live)
            shutil.copytree(self._original, self.live, symlinks=True)
            self._states = states_below(self.live)
        return changes


def states_below(folder: Path) -> dict[str, FileState]:
    """The state of a directory and of everything in it, by path."""
    paths = [str(folder)]
    for place, folders, files in os.walk(folder):
        paths += [f"{place}/{name}" for name in folders + files]
    return {path.removeprefix(f"{folder}/"): _state_of(path) for path in paths}


def _state_of(path: str) -> FileState:
    status = os.lstat(path)
    return FileState(
        status.st_mode, status.st_nlink, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


def _environment(home: Path) -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(OF_THE_TEST_RUN)
    }
    # A rustup in the real home would not find its toolchains from another one.
    toolchains = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".rustup"
    return inherited | {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        # Those of Interlock's own environment, which the project does not use.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(toolchains)),
    }


def _write_home(home: Path) -> None:
    home.mkdir(parents=True)
    (home / ".bashrc").write_text("alias ll='ls -l'\n")
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    for name in (".cache", ".cargo", ".config", ".npm"):
        (home / name).mkdir()
    # npm has asked for a newer version of itself not long ago, and so does not ask now.
    (home / ".npm/_update-notifier-last-checked").touch()


def _write_files(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    for name in ("logs", "dist", "node_modules/.bin"):
        (folder / name).mkdir()
    (folder / "node_modules/.bin/tiny-colour").symlink_to("../tiny-colour/cli.js")
    (folder / "latest.log").symlink_to("logs/app.log")


def _write_data(folder: Path) -> None:
    orders = [
        {"id": n, "customer": CUSTOMERS[n % 4], "item": ITEMS[n * n % 3], "price": 3.25 + n * 1.5}
        for n in range(1, 31)
    ]
    table = io.StringIO()
    writer = csv.DictWriter(table, list(orders[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(orders)
    data = folder / "data"
    (data / "orders.csv").write_text(table.getvalue())
    (data / "orders.json").write_text(json.dumps(orders, indent=1))
    (data / "events.jsonl").write_text(
        "".join(json.dumps({"type": "sold", "at": order["id"]}) + "\n" for order in orders)
    )
    _write_database(data / "app.db", "delete", orders)
    _write_database(data / "events.db", "wal", orders)
    # Longer than a pipe holds, so that a shell needs a temporary file for a here-string of it.
    levels = ("INFO", "INFO", "WARN", "INFO", "ERROR")
    lines = [
        f"2024-05-01T12:{n // 60:02}:{n % 60:02} web {levels[n % 5]} request {n} took {n % 97} ms\n"
        for n in range(1500)
    ]
    (folder / "logs/app.log").write_text("".join(lines))
    (folder / "logs/app.log.1.gz").write_bytes(gzip.compress("".join(lines[:200]).encode()))


def _write_database(path: Path, journal: str, orders: Sequence[Mapping[str, object]]) -> None:
    database = sqlite3.connect(path)
    database.execute(f"pragma journal_mode = {journal}")
    database.execute("create table orders (id integer primary key, customer, item, price real)")
    database.execute("create table events (at integer, type text)")
    database.executemany("insert into orders values (:id, :customer, :item, :price)", orders)
    database.execute("insert into events select id, 'sold' from orders")
    database.commit()
    if journal == "delete":
        dump = "\n".join(database.iterdump())
        path.with_name("dump.sql.xz").write_bytes(lzma.compress(dump.encode()))
    database.close()


def _write_archives(folder: Path) -> None:
    (folder / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    with tarfile.open(folder / "dist/shop-1.0.tar.gz", "w:gz") as tar:
        tar.add(folder / "src", "shop-1.0/src")
        tar.add(folder / "PKG-INFO", "shop-1.0/PKG-INFO")
    (folder / "PKG-INFO").unlink()
    with zipfile.ZipFile(folder / "dist/shop.zip", "w") as archive:
        for path in sorted((folder / "src").rglob("*.py")):
            archive.write(path, path.relative_to(folder / "src"))


def _compile(folder: Path, environment: dict[str, str]) -> None:
    """Compile what would have been compiled before: as far as there is a compiler."""
    for program, command in (
        ("gcc", "make -s -C c"),
        ("cmake", "cmake -S c -B build > /dev/null"),
        ("javac", "javac -d java/classes java/src/main/java/shop/Invoice.java"),
        ("jar", "jar cfe java/invoice.jar shop.Invoice -C java/classes ."),
    ):
        if shutil.which(program):
            subprocess.run(["bash", "-c", command], cwd=folder, env=environment, check=True)


def _write_history(folder: Path, environment: dict[str, str]) -> None:
    """Six commits by two people on two branches, a tag, a stash, and work that is not committed."""
    day = 0

    def git(*arguments: str, author: str = "Ada") -> None:
        nonlocal day
        day += 1
        moment = f"2024-05-{day:02}T12:00:00+00:00"
        named = {
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_EMAIL": f"{author.lower()}@example.org",
            "GIT_AUTHOR_DATE": moment,
            "GIT_COMMITTER_DATE": moment,
        }
        subprocess.run(["git", *arguments], cwd=folder, env=environment | named, check=True)

    def append(name: str, text: str) -> None:
        with (folder / name).open("a") as file:
            file.write(text)

    # Without the samples of hooks that git copies into every new repository.
    git("init", "--quiet", "--template=")
    git("remote", "add", "origin", "git://localhost/shop.git")
    git("add", "README.md", "LICENSE", ".gitignore", "src", "tests", "pyproject.toml")
    git("commit", "--quiet", "--message=Sell tea, coffee and paper")
    git("add", ".")
    git("commit", "--quiet", "--message=Add the other languages", author="Grace")
    git("tag", "--annotate", "v1.0", "--message=The first release")
    git("switch", "--quiet", "--create", "feature/discounts")
    append("src/shop/prices.py", "\n\ndef discount(price: float) -> float:\n    return price / 2\n")
    git("commit", "--quiet", "--all", "--message=Give a discount", author="Grace")
    git("switch", "--quiet", "main")
    append("README.md", "\nSee `docs` for more.\n")
    git("commit", "--quiet", "--all", "--message=Mention the documentation")
    append("src/shop/cart.py", "\n    # the price is without tax\n")
    git("commit", "--quiet", "--all", "--message=Tidy the cart")
    append("README.md", "\nIdeas: vouchers.\n")
    git("stash", "push", "--quiet", "--message=vouchers")
    git("-c", "gc.reflogExpire=never", "gc", "--quiet")
    append("src/shop/cart.py", "    # not committed\n")
    (folder / "notes.txt").write_text("Ask about discounts.\n")
