"""Find the projects that a tool call names: those that have opted in, and to which a word leads.

The fast hook and the full one call the same function, so that neither knows a spelling that the
other does not. It never raises because of a word: the hook runs in every directory of the machine,
and must not block work that has nothing to do with Interlock.
"""

import posix

from interlock.sandbox.real_path import real_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONFIG = ".interlock/config.toml"
GLOB_CHARACTERS = frozenset("*?[")
PATH_MAX = 4096
CHARACTERS_MAX, LOOKUPS_MAX, FOLDERS_MAX = 512 * 1024, 10_000, 16
PATTERN_LOOKUPS, NAMES_MAX, LISTED_MAX = 400, 5_000, 20
MORE = "*"
"""Stands for any project, because more is named than can be looked at."""
FILE_TYPE, DIRECTORY = 0o170000, 0o040000
_BREAKS = str.maketrans(dict.fromkeys(";&|<>()=,@:`{}", " "))


def words_in(text: str, folder: str) -> list[str]:
    """Return whatever in a text may be a path, if a shell runs it in this folder."""
    text = text[:CHARACTERS_MAX].replace("\\\n", "").replace("\\ ", "\0")
    for spelling in ("$PWD", "${PWD}", "$(pwd)", "`pwd`"):
        text = text.replace(spelling, folder)
    quoted = text.replace("${HOME}", "~").replace("$HOME", "~").replace('"', "'").split("'")
    bare = "".join(quoted).replace("\\", "")
    words = bare.split()
    words += bare.translate(_BREAKS).split()
    words += [word[2:] for word in words if word[0] == "-"]  # `-Cproject`
    return [word.replace("\0", " ") for word in (*words, *quoted)]


def named_projects(
    words: "Iterable[str]", folder: str, *, may_be_patterns: bool = True
) -> "Iterator[str]":
    """Yield the root of each project into which a word leads.

    It may be relative to a directory that another word names (`cd a`, `git -C a`).
    """
    words = [word for word in dict.fromkeys(words) if 0 < len(word) <= PATH_MAX]
    folders, roots, names = [_expand_home(folder)], dict[str, str](), dict[str, list[str]]()
    lookups, is_cut = 0, False
    for base in folders:
        for word in words:
            is_pattern = may_be_patterns and bool(GLOB_CHARACTERS & set(word))
            is_absolute = word[0] in "/~"
            if is_absolute and base is not folders[0]:
                continue
            lookups += PATTERN_LOOKUPS if is_pattern else 1
            if lookups > LOOKUPS_MAX:
                yield MORE
                return
            path = _expand_home(word) if is_absolute else f"{base}/{word}"
            # To follow a path takes long, and most words of a text are none.
            is_likely = is_absolute or ".." in word or _type_of(f"{base}/{word.split('/')[0]}")
            matches = _matches(path, names) if is_pattern else []
            lookups += len(matches)
            for each in [*matches, *([path] if is_likely else [])]:
                try:
                    real = real_path(each)
                except (OSError, ValueError):  # the agent cannot open it either
                    continue
                if root := _root_around(real, roots):
                    yield root
                is_new = not is_pattern and real not in folders and _type_of(real) == DIRECTORY
                is_cut = is_cut or (is_new and len(folders) == FOLDERS_MAX)
                folders += [real] if is_new and not is_cut else []
    if is_cut:
        yield MORE


def _expand_home(path: str) -> str:
    home = posix.environ.get(b"HOME", b"").decode(errors="surrogateescape")
    return f"{home}{path[1:]}" if path == "~" or path[:2] == "~/" else path


def _root_around(path: str, roots: dict[str, str]) -> str:
    """Return the root of the project around a path, as `project.root_of` does; empty if none."""
    here = path
    while here not in roots:
        if _type_of(f"{here}/{CONFIG}"):
            roots[here] = here
        elif not here or _type_of(f"{here}/.git") == DIRECTORY:
            roots[here] = ""
        else:
            here = here.rpartition("/")[0]
    return roots.setdefault(path, roots[here])


def _matches(pattern: str, names: dict[str, list[str]]) -> list[str]:
    """Return the paths that may match a pattern: the start and the end of each part decide."""
    paths = [""] if "**" not in pattern else []  # of a word that is not known, `**` is left
    for part in pattern.split("/")[1:]:
        if not GLOB_CHARACTERS & set(part):
            paths = [f"{path}/{part}" for path in paths]
            continue
        start = part[: min(part.find(mark) for mark in GLOB_CHARACTERS if mark in part)]
        end = part[max(map(part.rfind, "*?]")) + 1 :]
        paths = [
            f"{path}/{name}"
            for path in paths[:LISTED_MAX]
            for name in _names_in(path, names)
            if name.startswith(start) and name.endswith(end) and (start or name[0] != ".")
        ]
    return paths


def _names_in(folder: str, names: dict[str, list[str]]) -> list[str]:
    if folder not in names:
        try:
            names[folder] = posix.listdir(folder or "/")[:NAMES_MAX]
        except (OSError, ValueError):
            names[folder] = []
    return names[folder]


def _type_of(path: str) -> int:
    """Return the type in the mode of a file; 0 if there is none, or it cannot be looked at."""
    try:
        return posix.lstat(path).st_mode & FILE_TYPE
    except (OSError, ValueError):
        return 0
