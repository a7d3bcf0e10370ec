"""Secret files in Interlock's own directory, which no agent may read, and the calls that would.

This stops an agent that errs. One that attacks finds a way: a script, a search from above.
"""

import re
from collections.abc import Iterable, Iterator

from interlock.core.gate.paths import (
    CHARACTERS_MAX,
    GLOB_CHARACTERS,
    PATH_MAX,
    RealPath,
    could_match,
    join_path,
    normal_parts,
)
from interlock.core.gate.shell import Analysis
from interlock.core.gate.tool_call import ToolCall, led_paths

SECRETS = ("secret", "agent-secret", "keyring")
"""With the first, anybody is the user to the server; with the last, anybody can sign tokens."""
BASES_MAX = 16  # directories against which names are resolved: no usual command changes to more

_METADATA_PROGRAMS = frozenset(("ls", "stat", "du", "df", "test", "[", "echo", "printf"))
"""Programs that describe a directory without reading its files."""
_QUOTES = re.compile(r"['\"\\]")
_WORD_BREAKS = re.compile(r"[\s;&|<>()=,`]+")
_READ_FILE = re.compile(r"<\s*+([^\s;&|<>()]+)")
_HOME_VARIABLE = re.compile(r"\$INTERLOCK_HOME\b|\$\{INTERLOCK_HOME\b[^}]{0,200}\}")
_LEADING_VARIABLE = re.compile(r"(?<![^\s;&|<>()=,`])(?:\$\{[^}]{0,200}\}|\$\w+)(?=/)")
_EXPANSION = re.compile(r"\$\{[^}]{0,200}\}|\$\w+|\{[^{}]*\}")


def secret_named_by(
    call: ToolCall, analysis: Analysis | None, home: str, real_path: RealPath
) -> str | None:
    """The path by which a call would read a secret: a file in `home`, or all of it.

    A path whose target cannot be determined counts as one.
    """
    if analysis:
        return _secret_named_in_shell(call, analysis, home, real_path)
    named = (*call.paths, *(one for one in call.input_texts if one.startswith(("/", "~", "."))))
    bases = [call.cwd, *(join_path(call.cwd, path) for path in named)]
    texts = [*call.input_texts, *([call.cwd] if call.kind == "search" else [])]  # its default
    return _first_secret(call, bases, texts, home, real_path)


def _secret_named_in_shell(
    call: ToolCall, analysis: Analysis, home: str, real_path: RealPath
) -> str | None:
    text = _HOME_VARIABLE.sub(lambda _: home, _QUOTES.sub("", call.command))
    # However the start of the path is written, and whatever the path is part of.
    ending = rf"{re.escape(home.rpartition('/')[2])}/+(?:\./+)*(?:{'|'.join(SECRETS)})"
    if match := re.search(rf"(?<![\w.-]){ending}(?![\w.-])", text, re.IGNORECASE):
        return match[0]
    parts = dict.fromkeys(_WORD_BREAKS.split(_to_pattern(text, home)))
    words = [word for word in parts if _may_be_secret(word)]
    words += (
        _to_pattern(part, home)
        for command in analysis.commands
        if command.program not in _METADATA_PROGRAMS
        for argument in command.arguments
        for part in (argument, argument.rpartition("=")[2])
    )
    words += _READ_FILE.findall(text)
    bases = _base_directories(call.cwd, analysis, home)
    return _first_secret(call, bases, words, home, real_path)


def _first_secret(
    call: ToolCall, bases: Iterable[str], words: Iterable[str], home: str, real_path: RealPath
) -> str | None:
    """The first path with secrets that one of the words names in one of the directories."""
    folders = [base for base in dict.fromkeys(bases) if len(base) <= PATH_MAX][:BASES_MAX]
    is_shell, characters = call.kind == "shell", 0
    for word in dict.fromkeys(words):
        if not word or len(word) > PATH_MAX:
            continue
        may_be_secret = _may_be_secret(word, home)
        for folder in folders:
            path = join_path(folder, word)
            characters += len(path) if may_be_secret else 0
            led = led_paths(call, word, folder, real_path)
            if (
                characters > CHARACTERS_MAX
                or (may_be_secret and _is_secret(path, home, is_shell=is_shell))
                or any(real is None or _is_secret(real, home, is_shell=is_shell) for real in led)
            ):
                return path[:PATH_MAX]
    return None


def _may_be_secret(word: str, home: str = "") -> bool:
    """Whether its last part can be that of a secret, or of our directory if that is given."""
    end = word.rpartition("/")[2].casefold()
    names = (*SECRETS, home.casefold().rpartition("/")[2]) if home else SECRETS
    is_folder = bool(home) and end in ("", ".", "..", "~")
    return is_folder or any(could_match(name, end) for name in names)


def _base_directories(cwd: str, analysis: Analysis, home: str) -> Iterator[str]:
    """The directories in which the commands may run: `cwd`, and wherever a `cd` leads."""
    yield cwd
    directory = cwd
    for command in analysis.commands:
        if command.program in {"cd", "pushd"} and command.arguments:
            target = join_path(directory, _to_pattern(command.arguments[-1], home))
            directory = target if len(target) <= PATH_MAX else directory
            yield directory


def _to_pattern(text: str, home: str) -> str:
    """The text as a shell may expand it: `~` for an unknown start, `*` for any other part."""
    text = _HOME_VARIABLE.sub(lambda _: home, _QUOTES.sub("", text))
    return _EXPANSION.sub("*", _LEADING_VARIABLE.sub("~", text))


def _is_secret(path: str, home: str, *, is_shell: bool) -> bool:
    """Whether it is a secret file or all of `home`; to a shell, a pattern may become one."""
    parts, ours = normal_parts(path, ""), home.casefold().split("/")[1:]
    has_unknown_start = parts[:1] == ["~"]
    path_parts = parts[has_unknown_start:]
    for secret_parts in (ours, *([*ours, name] for name in SECRETS)):
        missing = len(secret_parts) - len(path_parts)
        if not 0 <= missing < len(ours) or (missing and not has_unknown_start):
            continue
        # A mere wildcard stands for our directory only if everything around it fits.
        literal = path_parts[len(ours) - missing - 1].strip(f"{GLOB_CHARACTERS}]")
        if (literal or not (has_unknown_start or secret_parts is ours)) and _parts_match(
            path_parts, secret_parts[missing:], is_shell=is_shell
        ):
            return True
    return False


def _parts_match(parts: list[str], names: list[str], *, is_shell: bool) -> bool:
    pairs = zip(names, parts, strict=True)
    return all(could_match(name, part) if is_shell else name == part for name, part in pairs)
