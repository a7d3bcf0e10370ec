"""Looking through: the command that a wrapper, `xargs` or `find` runs, out of its words."""

from collections.abc import Sequence

import msgspec

from interlock.core.gate.command import variables
from interlock.core.gate.command.ast import ALTERNATIVES_MAX, DEVICES, Word, names
from interlock.core.gate.command.options import ParsedOptions, parse
from interlock.core.gate.paths import PATH_MAX, UNKNOWN, join_path

_DIGITS = " ".join(f"-{digit}" for digit in range(10))
WRAPPERS = {
    **dict.fromkeys(("builtin", "noglob", "nocorrect", "busybox", "toybox", "nohup", "uvx"), ""),
    "command": "-p",
    "exec": "-c -l -a=",
    "nice": f"-n= --adjustment= {_DIGITS}",
    "ionice": "-c= -n= -t --class= --classdata= --ignore",
    "time": "-p -v -l -h -f= --portability --verbose --format=",
    "timeout": "-k= -s= -v -f -p --kill-after= --signal= --verbose --foreground --preserve-status",
    "gtimeout": "-k= -s= --kill-after= --signal= --foreground",
    "stdbuf": "-i= -o= -e= --input= --output= --error=",
    "setsid": "-c -f -w --ctty --fork --wait",
    "caffeinate": "-d -i -m -s -u -t= -w=",
    "env": "-i -0 -v -u= -C= --ignore-environment --null --unset= --chdir= --debug",
    "sudo": "-n -E -H -S -k -b -P -i -s -u= -g= -p= -D= -h= -C= -T= -r= -t= --user= --group="
    " --non-interactive --preserve-env --set-home",
    "doas": "-n -u=",
    "xargs": "-0 -r -t -x -n= -L= -P= -s= -d= -E= -a= -I= --null --no-run-if-empty --verbose"
    " --max-args= --max-procs= --max-chars= --delimiter= --arg-file= --exit",
    "npx": "-y --yes",
    "flock": "-s -x -e -u -n -o -w= -E= -F --nonblock --wait=",
    "parallel": "-j= -P= -k -n= -N= -q -0 -X -m --jobs= --bar --eta --keep-order --dry-run",
    **dict.fromkeys(("uv", "poetry", "pipx", "hatch", "pdm", "rye", "pipenv"), ""),
}
"""Programs that run the command in their words, with all the options that they may be given."""
_OPERANDS = {"timeout": 1, "gtimeout": 1, "flock": 1}
_RUNNERS = frozenset(("uv", "poetry", "pipx", "hatch", "pdm", "rye", "pipenv"))
_DOUBTS = {
    "nohup": "`nohup` may write nohup.out",
    "flock": "`flock` makes its file",
    "parallel": "`parallel` runs what is not in sight",
    "uvx": "`uvx` fetches what it runs",
    "npx": "`npx` fetches what it runs",
    **{name: f"the project says what `{name}` runs" for name in _RUNNERS},
}
"""Why nobody can say what comes of it, even if what it runs only reads."""
_ALONE = frozenset(("env", "exec", "xargs", "command", "time", "nice", "builtin", "flock"))
_UNSEEN = Word("…", "…", "open", pattern=UNKNOWN)

_FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_FIND_WRITES = frozenset(("-fprint", "-fprint0", "-fprintf", "-fls"))
_FIND_VALUED = names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype"
    " -maxdepth -mindepth -mtime -mmin -atime -amin -ctime -cmin -newer -anewer -cnewer -size"
    " -perm -user -group -uid -gid -links -inum -samefile -fstype -printf -regextype -used"
    " -newermt -newerat -newerct"
)
_FIND_FLAGS = names(
    "-H -L -P -E -X -d -s -x -O0 -O1 -O2 -O3 -print -print0 -ls -o -or -a -and -not -true -false"
    " -prune -quit -empty -depth -xdev -mount -follow -daystart -noleaf -nouser -nogroup -readable"
    " -writable -executable -warn -nowarn -ignore_readdir_race -help -version --help --version --"
)


class WrappedCommand(msgspec.Struct):
    """The command that is run, and what speaks against it whatever it is."""

    words: Sequence[Word]
    doubts: list[str]


class FoundFiles(msgspec.Struct):
    """`find`: why it may do more than read, what it runs, and what it writes."""

    objection: str = ""
    commands: list[Sequence[Word]] = []
    written: list[str] = []
    removed: list[str] = []


def unwrap(name: str, words: Sequence[Word]) -> WrappedCommand | str:
    """Return the command that the wrapper runs, or what speaks against it if none is in sight."""
    parsed = parse(words, WRAPPERS[name], is_first=True)
    if parsed.strange:
        is_lookup = name == "command" and parsed.strange.text in {"-v", "-V"}
        unknown = f"`{name}` is given `{parsed.strange.raw}`, so what it runs is not known"
        return "" if is_lookup else unknown
    doubts = [_DOUBTS[name]] if name in _DOUBTS else []
    start = _OPERANDS.get(name, 0)
    for word in parsed.operands if name in {"env", "sudo"} else ():
        variable, equals, _ = word.start.partition("=")
        if not equals:
            break
        if not variables.is_harmless(variable) or word.kind not in {"exact", "one"}:
            doubts.append(f"`{variable}` is set, which may change what is run")
        start += 1
    if name in _RUNNERS:
        start = 1
        if not parsed.operands or parsed.operands[0].text not in {"run", "exec"}:
            return f"`{name}` may do anything"
    inner = parsed.operands[start:]
    if not inner:
        return "" if name in _ALONE else f"`{name}` runs nothing in sight"
    if name == "xargs":
        return _xargs_command(parsed, inner)
    return WrappedCommand(inner, doubts)


def _xargs_command(parsed: ParsedOptions, words: Sequence[Word]) -> WrappedCommand | str:
    """The command that `xargs` runs, with words of its input at the end or in place of its mark."""
    marks = [value for name, value in parsed.options if name == "-I"]
    if not marks:
        return WrappedCommand([*words, _UNSEEN], [])
    mark = marks[-1]
    # Of these the last wins: then the mark is none, and words of the input come at the end.
    is_rival = not parsed.names.isdisjoint(("-n", "-L", "--max-args"))
    if is_rival or not mark or not mark.is_exact or not mark.text:
        return "`xargs` is given a mark that is not known"
    return WrappedCommand([_fill(word, mark.text, UNKNOWN) for word in words], [])


def _fill(word: Word, mark: str, pattern: str) -> Word:
    """The word with something unknown in place of the mark; as a path, that is `pattern`."""
    if mark not in word.text:
        return word
    kind = "one" if word.kind in {"exact", "one"} else "open"
    filled = (word.text if word.is_exact else word.pattern).replace(mark, pattern)
    return Word(word.raw, word.raw, kind, word.start.partition(mark)[0], filled)


def look_through_find(words: Sequence[Word]) -> FoundFiles:
    found = FoundFiles()
    places = _searched_places(words)
    target = f"{{{','.join(places)}}}" if len(places) > 1 else places[0]
    target = target if len(target) <= PATH_MAX else UNKNOWN
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        following = words[index] if index < len(words) else None
        if not word.is_exact:
            if word.may_be_option or word.start.startswith(("(", "!", ",")):
                found.objection = f"what `{word.raw}` becomes is not known"
        elif word.text in _FIND_RUNS:
            end = _command_end(words, index)
            if end is None:
                found.objection = f"where `{word.text}` ends is not known"
                break
            found.commands.append([_fill(each, "{}", target) for each in words[index:end]])
            index = end + 1
        elif word.text in _FIND_WRITES:
            if not (following and following.is_exact and following.text in DEVICES):
                found.objection = f"`{word.text}` writes"
                found.written += following.paths if following else []
            index += 1
        elif word.text == "-delete":
            found.objection = "`-delete` removes files"
            found.removed += places
        elif word.text in _FIND_VALUED:
            index += bool(following and following.kind in {"exact", "one"})
        elif word.text.startswith("-") and word.text not in _FIND_FLAGS:
            found.objection = f"`{word.text}` is not known"
    return found


def _searched_places(words: Sequence[Word]) -> list[str]:
    """The files that `find` may find: where it looks, with the names that it looks for."""
    texts = [word.text for word in words]
    first = next(
        (i for i, text in enumerate(texts) if text.startswith(("-", "(", "!"))), len(words)
    )
    roots = [path for word in words[:first] for path in word.paths] or ["."]
    pairs = zip(texts, words[1:], strict=False)
    wanted = [path for text, word in pairs if text in {"-name", "-iname"} for path in word.paths]
    is_short = 0 < len(wanted) * len(roots) <= ALTERNATIVES_MAX
    return [join_path(root, name) for root in roots for name in wanted] if is_short else roots


def _command_end(words: Sequence[Word], start: int) -> int | None:
    """Where `;` stands, or `+` after `{}`; None if that is nowhere, or maybe somewhere before.

    One word may become a `;`, if what then stands behind it is an error to `find`.
    """
    may_have_ended = False
    for index in range(start, len(words)):
        word = words[index]
        is_plus = word.text == "+" and index > start and words[index - 1].text == "{}"
        if word.is_exact and (word.text == ";" or is_plus):
            return index if index > start else None
        may_be_operator = word.may_be_option or word.start.startswith((";", "+", "(", "!", ","))
        if (may_have_ended and may_be_operator) or word.kind not in {"exact", "one"}:
            return None
        may_have_ended = may_have_ended or (may_be_operator and not word.is_exact)
    return None
