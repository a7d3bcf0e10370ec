"""Words: how a shell splits text into words, and what may become of each when it is expanded.

Every pattern here takes one step for a character and none goes back, so reading is linear. What
bash and zsh read differently, or what evaluates text that is not in sight, is a `Doubt` or is
`Unreadable`; both make the command unknown.
"""

import re

from interlock.core.gate.command import variables
from interlock.core.gate.command.ast import Doubt, Event, Kind, Script, UnreadableShellText, Word
from interlock.core.gate.paths import UNKNOWN

NESTING_MAX = 5  # of substitutions, and of texts handed to `bash -c` or `eval`
FOUND_MAX = 500

_KINDS: tuple[Kind, ...] = ("exact", "one", "some", "open")
_META = frozenset(" \t\n;&|<>()\0")
_BLANK = re.compile(r"(?:[ \t]|\\\n)*")
_BARE = re.compile(r"[A-Za-z0-9_/.,:@%+=^-]++(?=[ \t\n;&|)\0])")
_PLAIN = re.compile(r"[^ \t\n;&|<>()\0'\"\\$`*?\[{,.~]+")
_QUOTED = re.compile(r"[^\"\\$`\0]+")
_UNQUOTED_BODY = re.compile(r"[^\\$`\0]+")
_TICKED = re.compile(r"[^\\`\0]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]")
_PARAMETER = re.compile(
    r"\$\{(#?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])((?:\[(?:[0-9]+|[@*])\])?)"
)
_OPERATION = re.compile(r":?[-=?+]|##?|%%?|//?|\^\^?|,,?")
_SLICE = re.compile(r": ?-?[0-9]+(?::-?[0-9]+)?(?=\})")
_IN_PARAMETER = re.compile(r"[^}\\'\"$`{<>()\0]+")
_IN_ARITHMETIC = re.compile(r"[^()$`'\"\\\0]+")
_NUMBERS_ONLY = re.compile(r"[0-9 \t\n+*/%<>=!&|^~?:,()-]*\Z")
_LITERAL_DOLLAR = frozenset(" \t\n;&|<>()\0\"'/.,:%}`")
_STAND_INS = {"PWD": ".", "HOME": "~", "INTERLOCK_HOME": "$INTERLOCK_HOME"}
_ANSI = dict(zip('abeEfnrtv\\"?', '\a\b\x1b\x1b\f\n\r\t\v\\"?', strict=True))
_ANSI_NUMBER = re.compile(r"[0-7]{1,3}|x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}")


class _WordBuilder:
    """A word as far as it was read."""

    __slots__ = ("has_brace", "is_brace", "is_tilde", "kind", "pieces", "prefix")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.kind = 0
        self.prefix: str | None = None
        self.has_brace = False
        self.is_brace = False
        self.is_tilde = False

    def expand(self, kind: Kind, stand_in: str = UNKNOWN) -> None:
        """Here comes something that is not literal; a pattern has `stand_in` for it."""
        if self.prefix is None:
            self.prefix = "".join(self.pieces)
        self.kind = max(self.kind, _KINDS.index(kind))
        self.pieces.append(stand_in)

    def word(self, raw: str) -> Word:
        if self.is_brace:
            self.expand("some", "")
            self.prefix = (self.prefix or "").partition("{")[0]
        text = "".join(self.pieces)
        if self.kind == 0 or raw in {"[", "[["}:
            return Word(text, raw, "one", text, text) if self.is_tilde else Word(text, raw)
        return Word(raw, raw, _KINDS[self.kind], self.prefix or "", text)


class Lexer:
    """Reads words from `text`, and puts what it finds in them to `found`."""

    def __init__(self, text: str, found: list[Event], depth: int = 0) -> None:
        assert "\0" not in text, "a shell cannot be given a NUL"
        self.text = text + "\0"  # so that there is always a next character
        self.at: int = 0
        self.found = found
        self.depth = depth
        self.scope: tuple[int, ...] = ()
        self.is_awaited = False  # a here-document begins after this line

    def commands(self, closing: str) -> None:
        """Read commands up to `closing`, and past it."""
        raise NotImplementedError

    def doubt(self, why: str) -> None:
        self.add(Doubt(why))

    def add(self, event: Event) -> None:
        if len(self.found) >= FOUND_MAX:
            raise UnreadableShellText(f"there are more than {FOUND_MAX} commands")
        self.found.append(event)

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise UnreadableShellText(f"substitutions are nested more than {NESTING_MAX} deep")

    def blanks(self) -> None:
        """Past blanks, and past a comment."""
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        if self.text[self.at] == "#":
            end = self.text.find("\n", self.at)
            self.at = end if end >= 0 else len(self.text) - 1

    def word(self) -> Word | None:
        """The word that begins here, if one does."""
        start, built = self.at, _WordBuilder()
        if bare := _BARE.match(self.text, start):  # most words are
            self.at = bare.end()
            return Word(bare.group(), bare.group())
        while True:
            char = self.text[self.at]
            if char in _META:
                if char in "<>" and self.text[self.at + 1] == "(":
                    built.pieces.append("/dev/fd/")
                    self._substitution(2, built, "one")
                    continue
                break
            self._read_unquoted(char, built, is_first=self.at == start)
        return built.word(self.text[start : self.at]) if self.at > start else None

    def _read_unquoted(self, char: str, built: _WordBuilder, *, is_first: bool) -> None:
        match char:
            case "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    raise UnreadableShellText("a single quote is not closed")
                self._take(built, end + 1, self.text[self.at + 1 : end])
            case '"':
                self.at += 1
                self._read_quoted(built)
            case "\\":
                escaped = self.text[self.at + 1]
                if escaped == "\0":
                    raise UnreadableShellText("nothing follows the last backslash")
                self._take(built, self.at + 2, "" if escaped == "\n" else escaped)
            case "$":
                self._dollar(built, is_quoted=False)
            case "`":
                self._backticks(built, is_quoted=False)
            case "*" | "?" | "[":
                built.expand("some", "")
                self._take(built, self.at + 1, char)
            case "~" if is_first:
                built.is_tilde = True
                self._take(built, self.at + 1)
            case "{" | "," | "." | "~":
                is_range = char == "." and self.text[self.at + 1] == "."
                built.is_brace = built.is_brace or (built.has_brace and (char == "," or is_range))
                built.has_brace = built.has_brace or char == "{"
                self._take(built, self.at + 1, char)
            case _:
                self._take_all(built, _PLAIN)

    def _take(self, built: _WordBuilder, end: int, piece: str | None = None) -> None:
        """Literal text up to `end`; `piece` is what it means, where that is something else."""
        written = self.text[self.at : end]
        if self.is_awaited and "\n" in written:
            raise UnreadableShellText("a line goes on where a here-document should begin")
        built.pieces.append(written if piece is None else piece)
        self.at = end

    def _take_all(self, built: _WordBuilder, plain: re.Pattern[str]) -> None:
        matched = plain.match(self.text, self.at)
        assert matched, "every other character has a case of its own"
        self._take(built, matched.end())

    def _read_quoted(self, built: _WordBuilder) -> None:
        """To the closing double quote, and past it."""
        while True:
            match self.text[self.at]:
                case '"':
                    self.at += 1
                    return
                case "\0":
                    raise UnreadableShellText("a double quote is not closed")
                case _:
                    self._in_quotes(built, _QUOTED, '$`"\\')

    def _in_quotes(self, built: _WordBuilder, plain: re.Pattern[str], escapable: str) -> None:
        match self.text[self.at]:
            case "\\":
                escaped = self.text[self.at + 1]
                piece = {"\n": "", "\0": "\\"}.get(escaped, f"\\{escaped}")
                piece = escaped if escaped in escapable else piece
                self._take(built, min(self.at + 2, len(self.text) - 1), piece)
            case "$":
                self._dollar(built, is_quoted=True)
            case "`":
                self._backticks(built, is_quoted=True)
            case _:
                self._take_all(built, plain)

    def body(self) -> None:
        """All of the text, as the body of a here-document that a shell expands."""
        built = _WordBuilder()
        while self.text[self.at] != "\0":
            self._in_quotes(built, _UNQUOTED_BODY, "$`\\")

    def _dollar(self, built: _WordBuilder, *, is_quoted: bool) -> None:
        following = self.text[self.at + 1]
        kind: Kind = "one" if is_quoted else "open"
        name = _NAME.match(self.text, self.at + 1)
        if name:
            self._expand(built, name.end(), kind, _STAND_INS.get(name.group(), UNKNOWN))
            if self.text[self.at] == "[":
                self.doubt("a subscript may run what is in a variable")
        elif self.text.startswith("((", self.at + 1):
            self._arithmetic(built)
        elif following == "(":
            self._substitution(2, built, kind)
        elif following == "{":
            self._parameter(built, is_quoted=is_quoted)
        elif following in "@*":
            self._expand(built, self.at + 2, "open")
        elif following in "?#$!":
            built.pieces.append("0")  # a number, so no option
            self._expand(built, self.at + 2, "one")
        elif following == "'" and not is_quoted:
            self._ansi(built)
        elif following == "[" or self.text.startswith("\\\n", self.at + 1):
            raise UnreadableShellText(f"`${following}` is read in several ways")
        elif following in _LITERAL_DOLLAR and (is_quoted or following != '"'):
            self._take(built, self.at + 1)
        else:
            self._expand(built, self.at + 1, "open")

    def _expand(self, built: _WordBuilder, end: int, kind: Kind, stand_in: str = UNKNOWN) -> None:
        built.expand(kind, stand_in)
        self.at = end

    def _substitution(self, skipped: int, built: _WordBuilder, kind: Kind) -> None:
        """`$(…)`, `<(…)` or `>(…)`: its commands are found, its outcome is not known."""
        self._deeper()
        built.expand(kind)
        self.at += skipped
        self.commands(")")
        self.depth -= 1

    def _backticks(self, built: _WordBuilder, *, is_quoted: bool) -> None:
        built.expand("one" if is_quoted else "open")
        inner = _WordBuilder()
        self.at += 1
        while self.text[self.at] != "`":
            match self.text[self.at : self.at + 2]:
                case "\0":
                    raise UnreadableShellText("a backtick is not closed")
                case "\\$" | "\\`" | "\\\\":
                    self._take(inner, self.at + 2, self.text[self.at + 1])
                case '\\"' if is_quoted:
                    self._take(inner, self.at + 2, '"')
                case "\\\0":
                    raise UnreadableShellText("a backtick is not closed")
                case part if part.startswith("\\"):
                    self._take(inner, self.at + 2)
                case _:
                    self._take_all(inner, _TICKED)
        self.at += 1
        self.add(Script("".join(inner.pieces), self.depth + 1))

    def _arithmetic(self, built: _WordBuilder) -> None:
        start, inner, opened = self.at + 3, _WordBuilder(), 0
        self._deeper()
        self.at = start
        while opened or self.text[self.at] != ")":
            if (char := self.text[self.at]) in "()":
                opened += 1 if char == "(" else -1
                self._take(inner, self.at + 1)
            elif char in "\0'\"\\":
                raise UnreadableShellText("the arithmetic in `$((…))` is not plain")
            else:
                self._in_quotes(inner, _IN_ARITHMETIC, "")
        if self.text[self.at + 1] != ")":
            raise UnreadableShellText("`$((` does not end with `))`")
        if not _NUMBERS_ONLY.match(self.text[start : self.at]):
            self.doubt("arithmetic may run what is in a variable")
        built.pieces.append("0")
        self._expand(built, self.at + 2, "one")
        self.depth -= 1

    def _parameter(self, built: _WordBuilder, *, is_quoted: bool) -> None:
        """`${…}` in the forms that do nothing but expand a variable, maybe with a default."""
        head = _PARAMETER.match(self.text, self.at)
        if not head:
            raise UnreadableShellText("an expansion `${…}` is not plain")
        self._deeper()
        length, name, subscript = head.groups()
        built.pieces.append("0" if length else "")
        is_many = name in {"@", "*"} or subscript in {"[@]", "[*]"}
        quoted: Kind = "one" if is_quoted and not is_many else "open"
        is_bare = self.text[head.end()] == "}" and not length
        stand_in = _STAND_INS.get(name, UNKNOWN) if is_bare else UNKNOWN
        built.expand("one" if length else quoted, stand_in)
        self.at = head.end()
        if part := _SLICE.match(self.text, self.at):
            self.at = part.end()
        elif operation := _OPERATION.match(self.text, self.at):
            self.at = operation.end()
            if "=" in operation.group() and variables.is_special(name):
                self.doubt(f"`{name}` is set")
            self._operand(is_quoted=is_quoted)
        if self.text[self.at] != "}" or (length and self.at != head.end()):
            raise UnreadableShellText("an expansion `${…}` is not plain")
        self.at += 1
        self.depth -= 1

    def _operand(self, *, is_quoted: bool) -> None:
        """The word in `${name:-word}`, to the brace that closes it."""
        inner = _WordBuilder()
        while self.text[self.at] != "}":
            match self.text[self.at]:
                case "\\" if self.text[self.at + 1] != "\0":
                    self._take(inner, self.at + 2)
                case "$":
                    self._dollar(inner, is_quoted=is_quoted)
                case "`":
                    self._backticks(inner, is_quoted=is_quoted)
                case "'" | '"' as quote if not is_quoted:
                    self._read_unquoted(quote, inner, is_first=False)
                case "(" | ")" | "<" | ">" if is_quoted:
                    self._take(inner, self.at + 1)
                case "\\" | "'" | '"' | "{" | "(" | ")" | "<" | ">" | "\0":
                    raise UnreadableShellText("an expansion `${…}` is not plain")
                case _:
                    self._take_all(inner, _IN_PARAMETER)

    def _ansi(self, built: _WordBuilder) -> None:
        r"""`$'…'`, with the escapes that all shells read alike."""
        self.at += 2
        while (char := self.text[self.at]) != "'":
            if char == "\0":
                raise UnreadableShellText("a single quote is not closed")
            if char != "\\":
                self._take(built, self.at + 1)
                continue
            number = _ANSI_NUMBER.match(self.text, self.at + 1)
            escaped = number.group() if number else self.text[self.at + 1]
            base = {"x": 16, "u": 16, "U": 16}.get(escaped[0], 8)
            code = int(escaped.lstrip("xuU"), base) if number else 0
            is_byte = escaped[0] not in "uU"
            if number and not 0 < code < (0x80 if is_byte else 0xD800):
                raise UnreadableShellText("`$'…'` holds something that is not plain text")
            if not number and escaped not in _ANSI:
                raise UnreadableShellText(f"shells differ about `\\{escaped}` in `$'…'`")
            self._take(built, self.at + 1 + len(escaped), chr(code) if number else _ANSI[escaped])
        self.at += 1
