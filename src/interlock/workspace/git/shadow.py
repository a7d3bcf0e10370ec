"""Compare, save and write the files of a worktree with a git directory of our own.

Git runs the filters that the settings of a repository name whenever it compares or writes files.
The shadow is a git directory that git is given instead of the repository's: it has the index, the
objects and the ignore rules of the repository, but not its settings. Attributes still name filters,
but only the user's own settings can say which program that is (Git LFS, say). A file whose filter
only the repository configures cannot be compared: callers leave it out (`find_unfiltered`).

Commands use a copy of the index: `git diff` writes it to refresh what it knows of the files, and
would put parts of a split index into the shadow.

Submodules need care all the same: git starts another git in them, which reads their settings. No
command here may examine them (`--ignore-submodules=dirty` compares their commits alone).
"""

import shutil
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.workspace.git.runner import NO_USER_SETTINGS, SECONDS_MAX, GitResult, run_git
from interlock.workspace.git.state import root_of

COMMITS_ONLY = "--ignore-submodules=dirty"
LISTING_BYTES_MAX = 256 * 1024 * 1024
# The settings of a repository that say how its files are written and name no program.
_INERT = (
    r"^core\.(autocrlf|checkstat|eol|excludesfile|filemode|ignorecase|precomposeunicode"
    r"|sparsecheckout|sparsecheckoutcone|symlinks|trustctime)$"
)
_DESCRIPTION_LINES = 6
_NOT_SET = 1  # the exit code of `git config` for a key that is not there
_NO_FILTER = ("unspecified", "unset", "set")


class GitFailed(OSError):
    """Git cannot do it. The message is git's own."""


class Shadow(msgspec.Struct, frozen=True):
    root: Path
    """The top of the worktree."""
    head: str
    """The commit at which the worktree stands; empty if there is none yet."""
    common: Path
    """Git's directory for all worktrees of the repository."""
    index: Path
    """The index of the worktree itself. Commands here use a copy, which is theirs to change."""
    variables: Mapping[str, str]
    settings: Mapping[str, str]
    seconds: float

    def run(
        self,
        *arguments: str,
        directory: Path | None = None,
        variables: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_bytes_max: int = LISTING_BYTES_MAX,
    ) -> GitResult:
        """Run git at the top of the worktree, or in a directory of it.

        Raises:
            GitFailed: git refuses, or takes too long.
        """
        return require(
            run_git(
                directory or self.root,
                *arguments,
                variables={**self.variables, **(variables or {})},
                settings=self.settings,
                stdin=stdin,
                seconds=self.seconds,
                output_bytes_max=output_bytes_max,
            )
        )

    def find_unfiltered(
        self, names: Iterable[str], directory: Path | None = None
    ) -> frozenset[str]:
        """Return the files whose filter only the repository configures, so that it did not run.

        The content that git would store for such a file cannot be computed here.
        """
        filters = self.filters_of(names, directory=directory)
        if not filters:
            return frozenset()
        not_run = configured_filters(self.root) - configured_filters(self.root, self.variables)
        return frozenset(name for name, filter_name in filters.items() if filter_name in not_run)

    def filters_of(
        self, names: Iterable[str], *options: str, directory: Path | None = None
    ) -> dict[str, str]:
        """Return the filters that attributes name for these files, whether configured or not."""
        listing = encode("".join(f"{name}\0" for name in names))
        if not listing:
            return {}
        asked = ("check-attr", "-z", "--stdin", *options, "filter")
        fields = decode(self.run(*asked, directory=directory, stdin=listing).raw).split("\0")
        triples = zip(fields[::3], fields[2::3], strict=False)  # name, attribute, value, name, …
        return {name: value for name, value in triples if value not in _NO_FILTER}


def configured_filters(
    directory: Path, variables: Mapping[str, str] | None = None
) -> frozenset[str]:
    """Return the names of the filters for which settings name a program.

    Raises:
        GitFailed: git cannot read the settings.
    """
    asked = ("config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$")
    listed = run_git(directory, *asked, variables=variables)
    if listed.code != _NOT_SET:
        require(listed)
    keys = (key for key in decode(listed.raw).split("\0") if key)
    return frozenset(key.removeprefix("filter.").rpartition(".")[0] for key in keys)


@contextmanager
def open_shadow(
    workspace: Path, *, seconds: float = SECONDS_MAX, has_user_settings: bool = True
) -> Generator[Shadow]:
    """Make a shadow of the repository of a worktree, for as long as it is used.

    Without the user's settings no filter runs at all, not even theirs.

    Raises:
        GitFailed: there is no repository, or it cannot be read in time.
    """
    root = root_of(workspace)
    if root is None:
        raise GitFailed(f"`{workspace}` is not in a git repository")
    user = {} if has_user_settings else NO_USER_SETTINGS
    own, common, index, objects, form, head = _describe(root, seconds)
    inert = run_git(root, "config", "-z", "--get-regexp", _INERT, variables=user, seconds=seconds)
    pairs = (entry.partition("\n") for entry in inert.output.split("\0") if entry)
    settings = {key: value if is_set else "true" for key, is_set, value in pairs}
    with tempfile.TemporaryDirectory() as folder:
        shadow = Path(folder)
        for name in ("objects", "refs", "info"):
            (shadow / name).mkdir()
        (shadow / "HEAD").write_text(f"{head or 'ref: refs/heads/main'}\n", "ascii")
        version = "0" if form == "sha1" else f"1\n[extensions]\nobjectFormat={form}"
        (shadow / "config").write_text(f"[core]\nrepositoryFormatVersion={version}\n", "ascii")
        rules = (common / "info/exclude", common / "info/attributes", own / "info/sparse-checkout")
        for rule in rules:
            (shadow / "info" / rule.name).symlink_to(rule)
        for shared in own.glob("sharedindex.*"):  # parts of a split index
            (shadow / shared.name).symlink_to(shared)
        try:
            # With its times: git compares them with those of the files.
            shutil.copy2(index, shadow / "index")
        except FileNotFoundError:
            pass  # nothing was ever staged
        except OSError as failure:
            raise GitFailed(f"the index of `{root}` cannot be read: {failure}") from failure
        places = {
            "GIT_DIR": folder,
            "GIT_WORK_TREE": str(root),
            "GIT_INDEX_FILE": f"{folder}/index",
            "GIT_OBJECT_DIRECTORY": str(objects),
        }
        yield Shadow(
            root=root,
            head=head,
            common=common,
            index=index,
            variables={**user, **places},
            settings=settings,
            seconds=seconds,
        )


def _describe(root: Path, seconds: float) -> tuple[Path, Path, Path, Path, str, str]:
    """Return git's directory, the common one, index, objects, hash function and HEAD."""
    files = ("--git-dir", "--git-common-dir", "--git-path", "index", "--git-path", "objects")
    asked = ("rev-parse", "--path-format=absolute", *files, "--show-object-format", "HEAD")
    result = run_git(root, *asked, seconds=seconds)
    lines = decode(result.raw).splitlines()
    # Where there is no commit yet, git repeats the word HEAD, and complains about it.
    is_unborn = lines[-1:] == ["HEAD"]
    if len(lines) != _DESCRIPTION_LINES or (result.code and not is_unborn):
        raise GitFailed(result.error.strip() or f"git cannot read the repository of `{root}`")
    own, common, index, objects = map(Path, lines[:4])
    return own, common, index, objects, lines[4], "" if is_unborn else lines[5]


def require(result: GitResult) -> GitResult:
    """Raises `GitFailed` if git has failed."""
    if result.code:
        raise GitFailed(result.error.strip() or "git refused")
    return result


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def decode(raw: bytes) -> str:
    """Return names as text that `encode` gives back as the same bytes, whatever they are."""
    return raw.decode("utf-8", "surrogateescape")
