"""Plain programs: why one that runs none of its words may do more than read, by those words."""

import re
from collections.abc import Sequence

from interlock.core.gate.command import inline, options, programs
from interlock.core.gate.command.ast import DEVICES, Word
from interlock.core.gate.command.builtins import BUILTINS
from interlock.core.gate.command.network_programs import DAEMON_CLIENTS
from interlock.core.gate.command.options import ParsedOptions, parse
from interlock.core.gate.command.programs import ProgramRule

_GUESSED_SCHEMES = ("dict.", "ftp.", "imap.", "ldap.", "pop3.", "smtp.", "gopher.")
"""Beginnings of host names by which curl guesses the scheme."""
_HOST = re.compile(r"[\w.-]*(?::[0-9]+)?(?:[?#].*)?")


def objection_to(name: str, words: Sequence[Word]) -> str:
    """The reason why a program may do more than read; empty if it surely reads, or if all that it
    does goes through a network or a daemon.
    """
    first = words[0].text if words and words[0].is_exact else ""
    match name:
        case "sed" | "gsed":
            return inline.sed(words)
        case "awk" | "gawk" | "mawk" | "nawk":
            return inline.awk(words)
        case "tar" if first and not first.startswith("-"):
            # The old way to write it: letters first, then their values.
            letters = f"-{first.replace('f', '')}{'f' * ('f' in first)}"
            words = [Word(letters, first), *words[1:]]
        case _ if name in DAEMON_CLIENTS:
            return ""
        case _ if name in BUILTINS:
            return BUILTINS[name](words)
        case _ if name in programs.VERBS:
            return _objection_to_verb(name, words)
        case _:
            pass
    if name in programs.READERS:
        return _objection_by_rules(programs.READERS[name], words)
    return f"`{name}{f' {first}' if first.startswith('-') else ''}` may do anything"


def tells_about_itself(name: str, words: Sequence[Word]) -> bool:
    """Whether it is asked for its version or for help, and nothing else."""
    asked = words[0].text if len(words) == 1 else ""
    return not programs.ALONE.get(asked, set()).isdisjoint((name, name.rstrip("0123456789.")))


def _objection_by_rules(rules: Sequence[ProgramRule], words: Sequence[Word]) -> str:
    objections = [_objection_by_rule(rule, words) for rule in rules]
    return "" if "" in objections else objections[0]


def _objection_by_rule(rule: ProgramRule, words: Sequence[Word]) -> str:
    if rule.only is None:
        seen = [word for word in words if word.is_exact] if rule.is_loose else words
        word = options.hit(seen, rule.without) if rule.without else None
        return f"it is given `{word.raw}`" if word else ""
    known, is_clustered = f"{rule.only} {rule.devices}", not rule.is_unclustered
    parsed = parse(words, known, is_clustered=is_clustered)
    early = (
        parse(words, known, is_first=True, is_clustered=is_clustered) if rule.is_early else parsed
    )
    devices = options.parse_known_options(rule.devices).valued
    for name, value in parsed.options:
        if name in devices and not (value and value.is_exact and value.text in {*DEVICES, "-"}):
            return f"`{name}` writes a file"
        if value and rule.values_not and not _is_without(value, rule.values_not.split()):
            return f"`{name}` may do more than it says"
    if parsed.strange:
        return f"it is given `{parsed.strange.raw}`"
    if rule.schemes and (objection := _objection_to_address(rule, words, parsed.operands)):
        return objection
    if rule.needs and early.names.isdisjoint(rule.needs.split()):
        return f"it has none of `{rule.needs}`"
    return _objection_to_operands(rule, early)


def _is_without(value: Word, parts: Sequence[str]) -> bool:
    return value.is_exact and not any(part in value.text.casefold() for part in parts)


def _objection_to_address(
    rule: ProgramRule, words: Sequence[Word], operands: Sequence[Word]
) -> str:
    """Other schemes send what is in the address; a line break begins another request."""
    if any("\n" in word.text or "\r" in word.text for word in words):
        return "it is given a line break"
    for word in operands:
        address = word.start.casefold()
        scheme, has_scheme, rest = address.partition("://")
        is_known = bool(has_scheme) and scheme in rule.schemes.split()
        host = (rest if is_known else address).partition("/")[0]
        host = host.removesuffix(":") if is_known and not word.is_exact else host
        if not _HOST.fullmatch(host) or host.startswith(_GUESSED_SCHEMES):
            return f"it is given the address `{word.raw}`"
    return ""


def _objection_to_operands(rule: ProgramRule, parsed: ParsedOptions) -> str:
    most = rule.operands_max
    if parsed.names & options.parse_known_options(rule.lifts.replace("=", "")).flags:
        return ""
    if most is not None and len(parsed.operands) > most:
        return f"it is given `{parsed.operands[-1].raw}`"
    for word in parsed.operands:
        is_off = rule.starts_not and (word.start.startswith(rule.starts_not) or not word.start)
        is_one = word.kind in {"exact", "one"} or (word.kind == "some" and most is None)
        if not is_one or not word.start.startswith(rule.starts) or is_off:
            return f"what `{word.raw}` becomes is not known"
    return ""


def _objection_to_verb(name: str, words: Sequence[Word]) -> str:
    """For a program whose first words say what it does."""
    parsed = parse(words, programs.BEFORE_VERB.get(name, ""), is_first=True)
    if parsed.strange or not parsed.operands:
        return f"`{name}` is not told what to do in its words" if words else ""
    for option, value in parsed.options:
        setting = value.text.lower() if value and value.is_exact and "\n" not in value.text else ""
        is_pager = "pager" in setting and setting != "core.pager=cat"
        if option == "-c" and (is_pager or not setting.startswith(programs.GIT_SETTINGS)):
            return f"`{name} -c {setting}` may change what it runs"
    texts = [word.text if word.is_exact else "" for word in parsed.operands[:2]]
    for count in range(len(texts), 0, -1):
        verb = " ".join(texts[:count])
        if rules := programs.VERBS[name].get(verb):
            objection = _objection_by_rules(rules, parsed.operands[count:])
            return objection and f"`{name} {verb}`: {objection}"
    return f"`{name} {texts[0]}`".replace(" `", "`") + " may do anything"
