"""Grammar: the simple commands in a shell's text, wherever they stand.

What is read is the part of the grammar on which bash and zsh agree. Whatever else there is makes
the rest of the text unreadable: then the commands found so far count, and one that is not known.
"""

import re

from interlock.core.gate.command import ast, variables
from interlock.core.gate.command.ast import (
    Event,
    Redirect,
    SimpleCommand,
    UnreadableShellText,
    Word,
)
from interlock.core.gate.command.lexer import Lexer

COMPOUND_MAX = 16  # deeper than a person writes, and far from Python's own limit

_END = r"(?=[ \t\n;&|<>()\0])"
_RESERVED = re.compile(
    r"(?:!|\{|\}|\[\[|if|then|elif|else|fi|while|until|do|done|for|select|case|esac|function"
    rf"|time|coproc|in){_END}"
)
_PORTABLE = re.compile(f"-p{_END}")
_PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
_COMPOUND = frozenset(("{", "[[", "if", "while", "until", "for", "select", "case"))
_REDIRECT = re.compile(
    r"(&>>?)|([0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\})?(<<<|<<-?|<>|<&|<(?!\()|>>|>&|>\||>(?!\())"
)
_DELIMITER = re.compile(r"(\\?)([A-Za-z0-9_.,:@%+/!=-]+)|'([^'\n\0]*)'|\"([^\"\\$`\n\0]*)\"")
_REGEX_PART = re.compile(r"[^ \t\n;&<>()'\"\\$`\0]+")
_NUMERIC = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))


class ShellParser(Lexer):
    """Reads commands. `is_posix`: by a shell that may be neither bash nor zsh."""

    def __init__(self, text: str, found: list[Event], depth: int, *, is_posix: bool) -> None:
        super().__init__(text, found, depth)
        self.is_posix = is_posix
        self.compounds = 0
        self.heredocs: list[tuple[str, bool, bool]] = []
        self.is_awaited_outside = False

    def read(self) -> None:
        self._list(may_be_empty=True)
        if self.text[self.at] != "\0":
            raise UnreadableShellText(f"`{self.text[self.at]}` stands where a command should end")
        self._no_heredoc()

    def commands(self, closing: str) -> None:
        outside = (self.heredocs, self.is_awaited, self.is_awaited_outside)
        scope, self.scope = self.scope, (*self.scope, len(self.found))
        self.is_awaited_outside = self.is_awaited or self.is_awaited_outside
        self.heredocs, self.is_awaited = [], False
        self._list(may_be_empty=True)
        self._expect(closing)
        self._no_heredoc()
        self.heredocs, self.is_awaited, self.is_awaited_outside = outside
        self.scope = scope

    def _list(self, *stops: str, may_be_empty: bool = False) -> None:
        self.compounds += 1
        if self.compounds > COMPOUND_MAX:
            raise UnreadableShellText(f"commands are nested more than {COMPOUND_MAX} deep")
        while True:
            self._newlines()
            if self.text[self.at] in ");\0" or self._reserved_word() in stops:
                break
            may_be_empty = True
            self._and_or()
            self.blanks()
            if self.text[self.at] in ";&" and self.text[self.at + 1] not in ";&":
                self.at += 1
            elif self.text[self.at] != "\n":
                break
        self.compounds -= 1
        if not may_be_empty:
            raise UnreadableShellText("a command is missing")

    def _and_or(self) -> None:
        self._pipeline()
        while self.text.startswith(("&&", "||"), self.at):
            self.at += 2
            self._newlines()
            self._pipeline()

    def _pipeline(self) -> None:
        self.blanks()
        while (word := self._reserved_word()) in {"!", "time"}:
            self.at += len(word)
            self.blanks()
            if word == "time" and _PORTABLE.match(self.text, self.at):
                self.at += len("-p")
                self.blanks()
            if word == "time" and self.text[self.at] in ";\n\0":
                return
        self._command()
        self.blanks()
        while self.text[self.at] == "|" and self.text[self.at + 1] != "|":
            self.at += 2 if self.text[self.at + 1] == "&" else 1
            self._newlines()
            self._command()
            self.blanks()

    def _command(self) -> None:
        word = self._reserved_word()
        if self.text[self.at] == "(" or word in _COMPOUND:
            self._compound(word)
            redirects = self._redirects()
            if redirects:
                self.add(SimpleCommand((), (), redirects))
        elif word == "function":
            self._skip(word)
            if not self.word():
                raise UnreadableShellText("a function has no name")
            self._function()
        elif word and word not in {"in", "!", "time"}:
            raise UnreadableShellText(f"`{word}` stands where a command should begin")
        else:
            self._simple()

    def _compound(self, word: str) -> None:
        if self.text.startswith("((", self.at):
            raise UnreadableShellText("`((…))` may run what is in a variable")
        self._skip(word or "(")
        match word:
            case "":
                scope, self.scope = self.scope, (*self.scope, len(self.found))
                self._until(")")
                self.scope = scope
            case "{":
                self._until("}")
            case "if":
                end = "elif"
                while end == "elif":
                    self._until("then")
                    end = self._until("elif", "else", "fi")
                if end == "else":
                    self._until("fi")
            case "while" | "until":
                self._until("do")
                self._until("done")
            case "case":
                self._case()
            case "[[":
                self._test()
            case _:
                self._for()

    def _until(self, *ends: str) -> str:
        """Read commands up to one of the ends, and past it."""
        self._list(*ends)
        end = self._reserved_word() if self._reserved_word() in ends else ends[-1]
        self._expect(end)
        return end

    def _for(self) -> None:
        name = self.word()
        if not name or not name.is_exact or not name.raw.isidentifier() or not name.raw.isascii():
            raise UnreadableShellText("the loop has no plain variable")
        if variables.is_special(name.text):
            self.doubt(f"`{name.text}` is set")
        self._newlines()
        if self._reserved_word() == "in":
            self._skip("in")
            while self.word():
                self.blanks()
            if self.text[self.at] not in ";\n":
                raise UnreadableShellText("the words of a loop do not end")
        if self.text[self.at] == ";":
            self.at += 1
        self._newlines()
        self._expect("do")
        self._until("done")

    def _case(self) -> None:
        self.word()
        self._newlines()
        self._expect("in")
        self._newlines()
        while self._reserved_word() != "esac":
            if self.text[self.at] == "(":
                self.at += 1
            self._pattern()
            self._list("esac", may_be_empty=True)
            ending = next((e for e in (";;&", ";;", ";&") if self.text.startswith(e, self.at)), "")
            self.at += len(ending)
            self._newlines()
            if not ending:
                break
        self._expect("esac")

    def _pattern(self) -> None:
        while True:
            self.blanks()
            if not self.word():
                raise UnreadableShellText("a case has no pattern")
            self.blanks()
            if self.text[self.at] != "|":
                break
            self.at += 1
        self._expect(")")

    def _test(self) -> None:
        """`[[ … ]]`, in which nothing is run, unless a number is asked of what is none."""
        before, is_number_wanted = None, False
        while True:
            self._newlines()
            char = self.text[self.at]
            is_joined = self.text.startswith(("&&", "||"), self.at)
            if is_joined or char in "()" or (char in "<>" and self.text[self.at + 1] != "("):
                if self.is_posix:
                    self.doubt("some shells have no `[[`")
                self.at += 2 if is_joined else 1
                continue
            word = self.word()
            if not word:
                raise UnreadableShellText("`[[` is not closed")
            if word.raw == "]]":
                return
            is_operator = word.raw in _NUMERIC
            wanted = before if is_operator else word if is_number_wanted else None
            if word.raw in {"-v", "-R", "-t"} or (wanted and not ast.is_number(wanted)):
                self.doubt(f"`{word.raw}` may run what is in a variable")
            before, is_number_wanted = word, is_operator
            if word.raw == "=~":
                self._regex()

    def _regex(self) -> None:
        """After `=~`, where parentheses are part of the word."""
        self.blanks()
        opened = 0
        while opened or self.text[self.at] not in " \t\n\0":
            char = self.text[self.at]
            if char in "()":
                opened += 1 if char == "(" else -1
                self.at += 1
            elif part := _REGEX_PART.match(self.text, self.at):
                self.at = part.end()
            elif char in " \t\n\0" or not self.word():
                raise UnreadableShellText("the pattern after `=~` is not plain")
            if opened < 0:
                raise UnreadableShellText("the pattern after `=~` is not plain")

    def _function(self) -> None:
        """Read what follows the name: parentheses, maybe, and a body, which counts as if it ran."""
        self.blanks()
        if self.text[self.at] == "(":
            self.at += 1
            self.blanks()
            self._expect(")")
        self._newlines()
        if self.text[self.at] != "(" and self._reserved_word() not in _COMPOUND:
            raise UnreadableShellText("a function has no body")
        self._command()

    def _simple(self) -> None:
        assignments: list[Word] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self.blanks()
            if redirect := self._redirect():
                redirects.append(redirect)
                continue
            word = self.word()
            if not word:
                break
            if not words and ast.assigned_variable(word):
                assignments.append(word)
                if self.text[self.at] == "(" and word.raw.endswith("="):
                    self._array()
                continue
            words.append(word)
            if len(words) == 1 and _PARENTHESES.match(self.text, self.at):
                if assignments or redirects:
                    raise UnreadableShellText("a function cannot be defined here")
                return self._function()
        if not (assignments or words or redirects):
            raise UnreadableShellText("a command is missing")
        if self.text[self.at] == "(":
            raise UnreadableShellText("`(` stands where no command can begin")
        parts = (tuple(assignments), tuple(words), tuple(redirects))
        return self.add(SimpleCommand(*parts, self.scope))

    def _array(self) -> None:
        if self.depth or self.is_awaited:
            # Here bash 5.2 loses backslashes, gives up the line, and runs a here-document after it.
            raise UnreadableShellText("shells differ about a list of values here")
        self.at += 1
        self._newlines()
        while word := self.word():
            if word.raw.startswith("["):
                self.doubt("a subscript may run what is in a variable")
            self._newlines()
        self._expect(")")

    def _redirects(self) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        self.blanks()
        while redirect := self._redirect():
            found.append(redirect)
            self.blanks()
        return tuple(found)

    def _redirect(self) -> Redirect | None:
        matched = _REDIRECT.match(self.text, self.at)
        if not matched:
            return None
        both, descriptor, operator = matched.groups()
        self.at = matched.end()
        if descriptor and len(descriptor) > 1:
            self.doubt(f"shells differ about `{descriptor}` before a redirection")
        self.blanks()
        if operator in {"<<", "<<-"}:
            return self._heredoc(operator)
        target = self.word()
        if not target:
            raise UnreadableShellText("a redirection has no target")
        return Redirect(both or operator, target)

    def _heredoc(self, operator: str) -> Redirect:
        matched = _DELIMITER.match(self.text, self.at)
        if not matched or self.text[matched.end()] not in " \t\n;&|<>)\0":
            raise UnreadableShellText("the end of a here-document is not plain")
        self.at = matched.end()
        backslash, *bodies = matched.groups()
        delimiter = next(body for body in bodies if body is not None)
        is_quoted = bool(backslash) or bodies[0] is None
        self.heredocs.append((delimiter, is_quoted, operator == "<<-"))
        self.is_awaited = True
        return Redirect(operator, Word(delimiter, matched.group()))

    def _no_heredoc(self) -> None:
        if self.heredocs:
            raise UnreadableShellText("a here-document is missing")

    def _newlines(self) -> None:
        while True:
            self.blanks()
            if self.text[self.at] != "\n":
                return
            if self.is_awaited_outside:
                raise UnreadableShellText("a line goes on where a here-document should begin")
            self.at += 1
            for heredoc in self.heredocs:
                self._document(*heredoc)
            self.heredocs, self.is_awaited = [], False

    def _document(self, delimiter: str, is_quoted: bool, is_indented: bool) -> None:  # noqa: FBT001 (as `heredocs` has them)
        start = self.at
        while True:
            end = self.text.find("\n", self.at)
            line = self.text[self.at : end if end >= 0 else -1]
            line = line.lstrip("\t") if is_indented else line
            if line == delimiter:
                break
            if end < 0:
                raise UnreadableShellText("a here-document is not closed")
            if line.startswith(delimiter) and self.depth:
                raise UnreadableShellText("shells differ about where a here-document ends")
            if not is_quoted and (len(line) - len(line.rstrip("\\"))) % 2:
                raise UnreadableShellText("shells differ about where a here-document ends")
            self.at = end + 1
        if not is_quoted:
            body = self.text[start : self.at]
            ShellParser(body, self.found, self.depth, is_posix=self.is_posix).body()
        self.at = end + 1 if end >= 0 else len(self.text) - 1

    def _reserved_word(self) -> str:
        matched = _RESERVED.match(self.text, self.at)
        return matched.group() if matched else ""

    def _skip(self, word: str) -> None:
        self.at += len(word)
        self.blanks()

    def _expect(self, token: str) -> None:
        self.blanks()
        is_whole = token == ")" or self._reserved_word() == token
        if not is_whole or not self.text.startswith(token, self.at):
            raise UnreadableShellText(f"`{token}` is missing")
        self.at += len(token)
