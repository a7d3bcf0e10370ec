"""Secret files: what lies in Interlock's own directory that no agent reads, and who would read it.

This binds an agent that errs. One that attacks finds a way: a link, a script, a search from above.
"""

import re
from collections.abc import Iterator

from interlock.core.gate import paths
from interlock.core.gate.paths import GLOB, could_be
from interlock.core.gate.shell import Analysis
from interlock.core.gate.tool_call import Call

SECRETS = ("secret", "agent-secret", "keyring")
"""With the first, anybody is the user to the server; with the last, anybody signs tokens."""
BASES_MAX = 16  # directories from which a name is looked at: nobody goes through more on the way

_NAMING = frozenset(("ls", "stat", "du", "df", "test", "[", "echo", "printf"))
"""Programs that say something of a directory without reading what is in its files."""
_QUOTES = re.compile(r"['\"\\]")
_BREAKS = re.compile(r"[\s;&|<>()=,`]+")
_OURS = re.compile(r"\$INTERLOCK_HOME\b|\$\{INTERLOCK_HOME\b[^}]{0,200}\}")
_LEADING = re.compile(r"(?<![^\s;&|<>()=,`])(?:\$\{[^}]{0,200}\}|\$\w+)(?=/)")
_FILLED = re.compile(r"\$\{[^}]{0,200}\}|\$\w+|\{[^{}]*\}")


def read_by(call: Call, analysis: Analysis | None, home: str) -> str | None:
    """What a call names that holds secrets, a file in `home` or all of it, if it names one."""
    if analysis:
        return _named_in_shell(call, analysis, home)
    names = (*SECRETS, home.casefold().rpartition("/")[2])
    texts = (text for text in call.named if any(name in text.casefold() for name in names))
    bases = (call.cwd, *(text for text in call.named if text.startswith(("/", "~"))))[:BASES_MAX]
    named = dict.fromkeys(_joined(base, text) for text in texts for base in bases)
    if call.kind == "search":
        named[call.cwd] = None  # where they look if nothing else is said
    return next((path for path in named if _is_secret(path, home, is_shell=False)), None)


def _named_in_shell(call: Call, analysis: Analysis, home: str) -> str | None:
    text = _OURS.sub(lambda _: home, _QUOTES.sub("", call.command))
    # However its beginning is written, and in whatever it stands.
    ending = rf"{re.escape(home.rpartition('/')[2])}/+(?:\./+)*(?:{'|'.join(SECRETS)})"
    if found := re.search(rf"(?<![\w.-]){ending}(?![\w.-])", text, re.IGNORECASE):
        return found[0]
    bases = list(dict.fromkeys(_bases(call.cwd, analysis, home)))[:BASES_MAX]
    words = [word for word in dict.fromkeys(_BREAKS.split(_spelled(text, home))) if _ends_so(word)]
    words += (
        _spelled(part, home)
        for command in analysis.commands
        if command.program not in _NAMING
        for argument in command.arguments
        for part in (argument, argument.rpartition("=")[2])
    )
    named = (_joined(base, word) for word in dict.fromkeys(words) if word for base in bases)
    return next((path for path in named if _is_secret(path, home, is_shell=True)), None)


def _ends_so(word: str) -> bool:
    end = word.rpartition("/")[2].casefold()
    return any(could_be(name, end) for name in SECRETS)


def _bases(cwd: str, analysis: Analysis, home: str) -> Iterator[str]:
    """Where the commands may be run: here, or where a `cd` leads."""
    yield cwd
    directory = cwd
    for command in analysis.commands:
        if command.program in {"cd", "pushd"} and command.arguments:
            directory = _joined(directory, _spelled(command.arguments[-1], home))
            yield directory


def _spelled(text: str, home: str) -> str:
    """As a shell may read it: `~` for a beginning that is not known, `*` for any other part."""
    text = _OURS.sub(lambda _: home, _QUOTES.sub("", text))
    return _FILLED.sub("*", _LEADING.sub("~", text))


def _joined(base: str, path: str) -> str:
    return path if path.startswith(("/", "~")) else f"{base.rstrip('/')}/{path}"


def _is_secret(path: str, home: str, *, is_shell: bool) -> bool:
    """Whether it is a secret file or all of `home`; to a shell, a pattern may become one."""
    parts, ours = paths.parts(path, ""), home.casefold().split("/")[1:]
    is_cut = parts[:1] == ["~"]  # whose home that is, is not known here
    given = parts[is_cut:]
    for wanted in (ours, *([*ours, name] for name in SECRETS)):
        missing = len(wanted) - len(given)
        if not 0 <= missing < len(ours) or (missing and not is_cut):
            continue
        # Mere wildcards stand for our directory only where everything around them fits.
        is_said = given[len(ours) - missing - 1].strip(f"{GLOB}]")
        if (is_said or not (is_cut or wanted is ours)) and _are(
            given, wanted[missing:], is_shell=is_shell
        ):
            return True
    return False


def _are(parts: list[str], wanted: list[str], *, is_shell: bool) -> bool:
    pairs = zip(wanted, parts, strict=True)
    return all(could_be(name, part) if is_shell else name == part for name, part in pairs)
