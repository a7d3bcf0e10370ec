"""Written paths: the files that a command which does not surely read would write.

This is about words, not about safety: it finds where a command *names* what nobody may write. A
program that is not listed here writes, as far as is known, what an option like `-o` names.
"""

import re
from collections.abc import Sequence

import msgspec

from interlock.core.gate.command.ast import Word, names
from interlock.core.gate.command.options import parse
from interlock.core.gate.command.programs import BEFORE_VERB
from interlock.core.gate.paths import UNKNOWN, join_path

_EVERY_OPERAND = names(
    "touch mkdir mkfifo mknod rmdir truncate shred unlink rm tee sponge dos2unix unix2dos patch ed"
    " ex vi vim nvim nano emacs sqlite3"
)
_ALL_BUT_FIRST = names("chmod chown chgrp setfacl chattr chflags uniq xxd")
_INTO_LAST = names("cp mv ln install rsync ditto scp")
_IN_PLACE = names("sed gsed perl ruby yq")
_GIT_VERBS = names("rm restore checkout clean stash")
_IN_PLACE_OPTION = re.compile(r"-[pnalwstTuUcWErsz0-9]*[iI]|--in")
_PROGRAM_OPTION = re.compile(r"(?:-\w*?[ef]|--expr[a-z]*=?|--file=?)(.*)", re.DOTALL)
_OUTPUT_OPTION = re.compile(r"(?:-[A-Za-z]*?[oO]|--out[a-z-]*=?)(.*)", re.DOTALL)
_GIT_OUTPUT_OPTION = re.compile(r"--outp[a-z]*=?(.*)", re.DOTALL)
_TAR_CREATES = re.compile(r"-?[A-Za-z]*c|--create")
_TAR_OPTION = re.compile(r"(?:-[A-Za-z]*f|--file=?)(.*)", re.DOTALL)
_TARGET_OPTION = re.compile(r"(?:-[A-Za-z]*?t|--target[a-z-]*=?)(.*)", re.DOTALL)


class WrittenPaths(msgspec.Struct):
    paths: list[str] = []
    trees: list[str] = []
    """What is removed, moved or replaced, with everything below."""
    is_all: bool = False
    """Whether it writes nothing else, wherever it runs."""


def find_written_paths(name: str, words: Sequence[Word]) -> WrittenPaths:
    if name == "git":
        return _written_by_git(words)
    if name in _INTO_LAST:
        return _written_into(words, is_moved=name == "mv")
    if name in _IN_PLACE and any(_IN_PLACE_OPTION.match(word.text) for word in words):
        return WrittenPaths(_edited_files(words))
    if name == "tar" and words and _TAR_CREATES.match(words[0].text):
        # The old way to write it has no dash before the first letters.
        first = Word(f"-{words[0].text.lstrip('-')}", words[0].raw)
        return WrittenPaths(_option_values([first, *words[1:]], _TAR_OPTION), is_all=True)
    paths = _option_values(words, _OUTPUT_OPTION)
    if name == "dd":
        paths += [word.text[3:] for word in words if word.text.startswith("of=")]
    elif name in _EVERY_OPERAND:
        paths += _operands(words)
    elif name in _ALL_BUT_FIRST:
        paths += _operands(words)[1:]
    return WrittenPaths(paths, paths if name == "rm" else [])


def _operands(words: Sequence[Word]) -> list[str]:
    texts = [word.text for word in words]
    end = texts.index("--") if "--" in texts else len(texts)
    operands = [word for word in words[:end] if not word.text.startswith("-")]
    return [path for word in (*operands, *words[end + 1 :]) for path in word.paths]


def _option_values(words: Sequence[Word], option: re.Pattern[str]) -> list[str]:
    """The values of an option, which are in the same word or in the next."""
    values: list[str] = []
    for index, word in enumerate(words):
        matched = option.match(word.text if word.is_exact else word.pattern)
        if matched and matched[1]:
            values.append(matched[1])
        elif matched:
            values += [
                path for following in words[index + 1 : index + 2] for path in following.paths
            ]
    return values


def _edited_files(words: Sequence[Word]) -> list[str]:
    """The files that `sed -i` and the like are given, without the program if it comes first."""
    programs = _option_values(words, _PROGRAM_OPTION)
    files = [path for path in _operands(words) if path and path not in programs]
    return files if programs else files[1:]


def _written_into(words: Sequence[Word], *, is_moved: bool) -> WrittenPaths:
    """For programs that write their last operand, or in it if it is a directory."""
    operands, folders = _operands(words), _option_values(words, _TARGET_OPTION)
    if folders:
        sources, target = [path for path in operands if path not in folders], folders[-1]
    else:
        sources, target = operands[:-1] or operands, operands[-1] if operands[1:] else "."
    inside = [join_path(target, name) for source in sources for name in _base_names(source)]
    moved = sources if is_moved else []
    return WrittenPaths([target, *moved], [*inside, *moved], is_all=True)


def _base_names(source: str) -> list[str]:
    """The name that it gets in another directory, and `**` for its content if that is meant."""
    name = source.rstrip("/").rpartition("/")[2]
    is_content = source.endswith("/") or name in {".", ".."}
    return [name, UNKNOWN] if is_content else [name]


def _written_by_git(words: Sequence[Word]) -> WrittenPaths:
    parsed = parse(words, BEFORE_VERB["git"], is_first=True)
    verb, rest = parsed.operands[0].text if parsed.operands else "", parsed.operands[1:]
    written = WrittenPaths(_option_values(rest, _GIT_OUTPUT_OPTION))
    if verb == "mv":
        written = _written_into(rest, is_moved=True)
    elif verb in _GIT_VERBS:
        written = WrittenPaths(_operands(rest), _operands(rest))
    elif verb == "archive":
        written = WrittenPaths(_option_values(rest, _OUTPUT_OPTION))
    folder = ""
    for name, value in parsed.options:
        folder = join_path(folder, value.paths[0]) if name == "-C" and value else folder
    return WrittenPaths(
        [join_path(folder, path) for path in written.paths],
        [join_path(folder, path) for path in written.trees],
        is_all=verb == "archive",
    )
