"""Find secrets in text that is stored, shown or delivered.

The rules are data: those of gitleaks, as they are published, and a few of our own.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from importlib.resources import files
from typing import Any, Literal

import msgspec

from interlock.core.workflow.patterns import compile_pattern

RULE_FILES = ("gitleaks.toml", "interlock.toml")
_GENERAL_RULES = ("generic-api-key", "quoted-password", "variable-password")
_SHOWN_CHARS = 4
_SET_BYTES_MAX = 16 * 1024 * 1024


class SecretSpan(msgspec.Struct, frozen=True):
    """Where a secret stands in a text."""

    start: int
    end: int
    rule: str

    def beginning_in(self, text: str) -> str:
        """Return as much of it as helps to recognise it, and to nobody else."""
        return text[self.start : self.start + _SHOWN_CHARS] + "…"


class SuspectedSecret(msgspec.Struct, frozen=True):
    where: str
    kind: str
    shown: str
    """Only its beginning."""


class _Allowlist(msgspec.Struct, frozen=True, rename="camel", dict=True):
    """Text that a rule would find and that is no secret."""

    condition: Literal["OR", "AND"] = "OR"
    paths: tuple[str, ...] = ()
    regexes: tuple[str, ...] = ()
    regex_target: Literal["secret", "match", "line"] = "secret"
    stopwords: tuple[str, ...] = ()

    @cached_property
    def path_patterns(self) -> list[Any]:
        return [compile_pattern(path) for path in self.paths]

    @cached_property
    def patterns(self) -> list[Any]:
        return [compile_pattern(regex) for regex in self.regexes]

    def allows(self, parts: Mapping[str, str], path: str) -> bool:
        checks: list[bool] = []
        if self.paths:
            checks.append(_is_any_found(self.path_patterns, path))
        if self.regexes:
            checks.append(_is_any_found(self.patterns, parts[self.regex_target]))
        if self.stopwords:
            secret = parts["secret"].lower()
            checks.append(any(word in secret for word in self.stopwords))
        return all(checks) if self.condition == "AND" else any(checks)


class _Rule(msgspec.Struct, frozen=True, rename="camel", dict=True):
    id: str
    regex: str = ""
    """Empty in a rule about the names of files alone."""
    secret_group: int = 0
    """The group with the secret; 0 for the first that is not empty."""
    entropy: float = 0.0
    keywords: tuple[str, ...] = ()
    path: str = ""
    allowlists: tuple[_Allowlist, ...] = ()

    @cached_property
    def pattern(self) -> Any:
        return compile_pattern(self.regex, has_groups=True)

    @cached_property
    def path_pattern(self) -> Any:
        return compile_pattern(self.path)

    def find(self, text: str, path: str, allowed: _Allowlist) -> Iterator[SecretSpan]:
        if self.path and not self.path_pattern.search(path):
            return
        for match in self.pattern.finditer(text):
            start, end = self._secret_span(match)
            secret = text[start:end]
            if self.entropy and _entropy(secret) <= self.entropy:
                continue
            parts = {"secret": secret, "match": match[0], "line": _lines_around(text, start, end)}
            if not any(one.allows(parts, path) for one in (allowed, *self.allowlists)):
                yield SecretSpan(start, end, self.id)

    def _secret_span(self, match: Any) -> tuple[int, int]:
        groups = range(1, len(match.groups()) + 1)
        if self.secret_group:
            return match.span(self.secret_group)
        return next((match.span(group) for group in groups if match[group]), match.span())


class _RuleFile(msgspec.Struct, frozen=True):
    rules: tuple[_Rule, ...]
    allowlist: _Allowlist = _Allowlist()


class _Rules:
    """All rules, and a quick search for the words without which none of them finds anything."""

    def __init__(self) -> None:
        folder = files("interlock.core.session") / "secret_rules"
        read = [
            msgspec.toml.decode((folder / name).read_bytes(), type=_RuleFile) for name in RULE_FILES
        ]
        self.allowed = read[0].allowlist
        by_keyword: dict[str, list[_Rule]] = {}
        for rule in (rule for file in read for rule in file.rules if rule.regex):
            for keyword in rule.keywords:
                by_keyword.setdefault(keyword.lower(), []).append(rule)
        self._by_keyword = list(by_keyword.values())
        re2: Any = import_module("re2")
        options = re2.Options()
        options.literal = True
        options.max_mem = _SET_BYTES_MAX
        self._keywords = re2.Set.SearchSet(options)
        for keyword in by_keyword:
            self._keywords.Add(keyword)
        self._keywords.Compile()

    def candidates(self, text: str) -> list[_Rule]:
        rules: dict[str, _Rule] = {}
        found: list[int] = self._keywords.Match(text.lower()) or []
        for index in found:
            for rule in self._by_keyword[index]:
                rules[rule.id] = rule
        return list(rules.values())


def find_secrets(text: str, path: str = "") -> list[SecretSpan]:
    """Return the secrets in a text, which may be that of a file, in order and apart."""
    rules = _rules()
    if path and _is_any_found(rules.allowed.path_patterns, path):
        return []
    found = [
        secret for rule in rules.candidates(text) for secret in rule.find(text, path, rules.allowed)
    ]
    return _without_overlaps(found)


def find_suspected_secrets(where: str, text: str) -> Iterator[SuspectedSecret]:
    for secret in find_secrets(text):
        yield SuspectedSecret(where, secret.rule, secret.beginning_in(text))


def redact_secrets(text: str) -> str:
    """Return the text as it may be stored and shown: a placeholder stands for each secret."""
    parts: list[str] = []
    at = 0
    for secret in find_secrets(text):
        parts += text[at : secret.start], f"[secret removed: {secret.rule}]"
        at = secret.end
    return "".join((*parts, text[at:]))


def has_placeholder(text: str) -> bool:
    """Whether a text was copied from where its secrets had been removed."""
    return bool(re.search(r"\[secret removed: [\w-]+\]", text))


def _without_overlaps(found: Sequence[SecretSpan]) -> list[SecretSpan]:
    """Join what several rules found in the same place, under the name of the most telling one."""
    apart: list[SecretSpan] = []
    for secret in sorted(found, key=lambda one: (one.start, one.rule in _GENERAL_RULES)):
        if not apart or secret.start >= apart[-1].end:
            apart.append(secret)
            continue
        last = apart.pop()
        rule = secret.rule if last.rule in _GENERAL_RULES else last.rule
        apart.append(SecretSpan(last.start, max(last.end, secret.end), rule))
    return apart


def _is_any_found(patterns: Sequence[Any], text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)


def _lines_around(text: str, start: int, end: int) -> str:
    until = text.find("\n", end)
    return text[text.rfind("\n", 0, start) + 1 : until if until >= 0 else len(text)]


def _entropy(text: str) -> float:
    """Return the bits per character by how often each occurs (Shannon)."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


@cache
def _rules() -> _Rules:
    return _Rules()
