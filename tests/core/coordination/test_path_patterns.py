"""Patterns of paths: whether two overlap is compared with matching every path there is."""

import fnmatch
import re
from functools import cache
from itertools import product

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from interlock.core.coordination.path_patterns import (
    ALTERNATIVES_MAX,
    PATTERN_CHARS_MAX,
    PATTERNS_MAX,
    WITNESS_TOO_COMPLEX,
    PathSet,
    PatternFault,
    covers,
    normalise_pattern,
    overlap,
    parse_path_set,
)

ROOT = "/work/shop"
NAMES = ("a", "b", "A", "_", "ab", "bA")
CHOICES_MAX = 4  # of a pattern: all paths are tried with each
PATHS = ["/".join(names) for depth in (1, 2, 3) for names in product(NAMES, repeat=depth)]

Part = str | tuple[tuple["Part", ...], ...]
"""Of a pattern: a text as it is, or the choices of braces, each a row of parts."""


def written(parts: tuple[Part, ...]) -> str:
    return "".join(
        one if isinstance(one, str) else "{" + ",".join(map(written, one)) + "}" for one in parts
    )


@cache
def alternatives(parts: tuple[Part, ...]) -> list[str]:
    """The patterns without braces that these stand for."""
    choices = [
        [one] if isinstance(one, str) else [text for row in one for text in alternatives(row)]
        for one in parts
    ]
    return ["".join(chosen) for chosen in product(*choices)]


def is_match(names: list[str], path: list[str], flags: int) -> bool:
    if not names or not path:
        return not path and all(name == "**" for name in names)
    if names[0] == "**":
        return is_match(names[1:], path, flags) or is_match(names, path[1:], flags)
    pattern = fnmatch.translate(names[0].replace("[^", "[!"))
    return bool(re.match(pattern, path[0], flags)) and is_match(names[1:], path[1:], flags)


def is_in(parts: tuple[Part, ...], path: str, *, folds_case: bool = False) -> bool:
    """The oracle: one name after the other, without an automaton."""
    for text in alternatives(parts):
        names = text.split("/")
        is_directory = not set("*?[") & set(names[-1])
        rest = ["**"] if is_directory else []
        if is_match([*names, *rest], path.split("/"), re.IGNORECASE if folds_case else 0):
            return True
    return False


TOKENS = st.sampled_from(
    [
        "a",
        "b",
        "A",
        "+",
        "*",
        "?",
        "[ab]",
        "[!a]",
        "[^b]",
        "[a-b]",
        "[+-9]",
        "[A-B]",
        "[+-A]",
        "[A-_]",
        "-",
        "a*",
    ]
)
NAME = st.lists(TOKENS, min_size=1, max_size=3).map("".join)
TEXT = st.lists(st.one_of(NAME, st.just("**")), min_size=1, max_size=3).map("/".join)


def braces(inner: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    row = st.lists(inner, min_size=1, max_size=2).map(tuple)
    return st.lists(row, min_size=1, max_size=3).map(tuple)


PART = st.recursive(TEXT, braces, max_leaves=4)
PATTERN = (
    st.lists(PART, min_size=1, max_size=2)
    .map(tuple)
    .filter(lambda one: len(alternatives(one)) <= CHOICES_MAX)
)
Patterns = tuple[tuple[Part, ...], ...]
SOME = st.lists(PATTERN, min_size=1, max_size=2).map(tuple)
EXCLUDED = st.lists(PATTERN, max_size=1).map(tuple)


def has(patterns: Patterns, excluded: Patterns, path: str, *, folds_case: bool) -> bool:
    is_excluded = any(is_in(one, path, folds_case=folds_case) for one in excluded)
    return not is_excluded and any(is_in(one, path, folds_case=folds_case) for one in patterns)


def path_set(patterns: Patterns, excluded: Patterns) -> PathSet:
    return PathSet(tuple(map(written, patterns)), tuple(map(written, excluded)))


@given(one=SOME, without=EXCLUDED, other=SOME, except_for=EXCLUDED, folds_case=st.booleans())
@example(one=(("a[+-9]b",),), without=(), other=(("a/b",),), except_for=(), folds_case=False)
def test_two_sets_overlap_exactly_if_some_path_is_in_both(
    one: Patterns, without: Patterns, other: Patterns, except_for: Patterns, *, folds_case: bool
) -> None:
    """CF6. Whatever is answered can be checked: a witness by the oracle, none by all paths."""
    first, second = path_set(one, without), path_set(other, except_for)

    witness = overlap(first, second, folds_case=folds_case)

    excluded = (*without, *except_for)
    assume(witness != WITNESS_TOO_COMPLEX)
    assert (overlap(second, first, folds_case=folds_case) is None) == (witness is None)
    if witness is not None:
        assert has(one, excluded, witness, folds_case=folds_case)
        assert has(other, excluded, witness, folds_case=folds_case)
        assert covers(first, witness, folds_case=folds_case)
        assert covers(second, witness, folds_case=folds_case)
    else:
        in_both = (
            path
            for path in PATHS
            if has(one, excluded, path, folds_case=folds_case)
            and has(other, excluded, path, folds_case=folds_case)
        )
        assert next(in_both, None) is None


@given(patterns=SOME, excluded=EXCLUDED, path=st.sampled_from(PATHS), folds_case=st.booleans())
def test_a_set_has_the_paths_that_its_patterns_match(
    patterns: Patterns, excluded: Patterns, path: str, *, folds_case: bool
) -> None:
    expected = has(patterns, excluded, path, folds_case=folds_case)

    assert covers(path_set(patterns, excluded), path, folds_case=folds_case) == expected


@pytest.mark.parametrize(
    ("one", "other", "is_overlap"),
    [
        # What Agent Mail was seen to answer wrongly (research 2.9), and Maestro (1.5, row 5).
        ("src/**", "src/api/**", True),
        ("src/api/x.py", "src/api/*.py", True),
        ("src/a*.py", "src/*b.py", True),
        ("src/*/x.py", "src/api/*", True),
        ("src", "src/a.py", True),
        ("README.md", "./README.md", True),
        ("Src/a.py", "src/a.py", False),
        ("src/api/**", "src/api2/**", False),
        ("src/*.py", "src/*.md", False),
        ("**/*.py", "docs/**", True),
        ("a.py", "a.py.bak", False),
        ("src/**", "src", True),
        ("**", "anything/at/all", True),
        ("{src,docs}/*.md", "docs/{a,b}.md", True),
        ("src/{api,db}/**", "src/web/**", False),
        ("[!a]/x", "a/x", False),
        ("*", "a/b", False),
        ("a/**/z", "a/z", True),
    ],
)
def test_known_pairs(one: str, other: str, *, is_overlap: bool) -> None:
    first, second = parse_path_set([one], ROOT), parse_path_set([other], ROOT)
    assert isinstance(first, PathSet)
    assert isinstance(second, PathSet)

    assert (overlap(first, second) is not None) == is_overlap
    assert (overlap(second, first) is not None) == is_overlap


def test_a_name_with_an_ending_is_a_file_and_brackets_may_be_in_a_name() -> None:
    """One agent that holds `**/*.py` is not in the way of an edit of the read-me."""
    python = PathSet(("**/*.py",))
    for name in ("README.md", "src/a.ts"):
        assert overlap(PathSet((name,)), python) is None
    assert overlap(PathSet(("v1.2/**",)), python) == "v1.2/.py", "a directory is written so"
    assert normalise_pattern("v1.2/", "/work") == "v1.2/**"
    route = PathSet(("app/[slug]/**",))
    assert covers(route, "app/[slug]/page.tsx")
    assert covers(route, "app/s/page.tsx")
    assert not covers(route, "app/[other]/page.tsx")


def test_case_is_that_of_the_file_system_and_excluded_paths_are_free() -> None:
    upper, lower = PathSet(("Src/A.py",)), PathSet(("src/a.py",))
    assert overlap(PathSet(("[A-z]",)), PathSet(("_",)), folds_case=True) == "_"
    assert overlap(PathSet(("[+-A]",)), PathSet(("x",)), folds_case=True) is None

    assert overlap(upper, lower, folds_case=True)
    assert overlap(PathSet(("src/**",), ("src/vendor",)), PathSet(("src/vendor/x.py",))) is None
    assert overlap(PathSet(("src/**",), ("src/vendor",)), PathSet(("src/x.py",))) == "src/x.py"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("./src//api/", "src/api"),
        ("src\\api\\x.py", "src/api/x.py"),
        ("src/../docs/x.md", "docs/x.md"),
        ("/work/shop/src/", "src"),
        ("/work/shop", "**"),
        (".", "**"),
        (" src/*.py ", "src/*.py"),
        ("./x/../.{git,hg}ignore/", ".{git,hg}ignore"),
    ],
)
def test_paths_are_written_in_one_way(text: str, normal: str) -> None:
    """CF7."""
    assert normalise_pattern(text, ROOT) == normal


@pytest.mark.parametrize(
    "text",
    [
        *("../other", "src/../../other", "src/**/../x", "/etc/passwd", "/work/shop2/x", "..\\x"),
        *("", "  ", "a\nb", "a\x00b", "x" * (PATTERN_CHARS_MAX + 1)),
        "{a,b}" * (ALTERNATIVES_MAX.bit_length()),
        "{a,b}" * 6 + "*a" * 200,
        *("src/{a/../b,c}", "{a,./b}", "{..,a}/x", "{a,b}/../c"),
    ],
)
def test_what_is_outside_of_the_project_or_too_much_is_refused(text: str) -> None:
    """CF7."""
    refused = parse_path_set(["ok", text], ROOT)

    assert isinstance(refused, PatternFault)
    assert (refused.pattern, bool(refused.reason)) == (text, True)


def test_a_set_names_some_path_and_not_too_many() -> None:
    assert isinstance(parse_path_set(["!src"], ROOT), PatternFault)
    assert isinstance(parse_path_set(["a"] * (PATTERNS_MAX + 1), ROOT), PatternFault)
    assert parse_path_set(["!./b/", "a", "./a"], ROOT) == PathSet(("a",), ("b",))


CHOICES = "{a,b}" * 6
HOSTILE: dict[str, tuple[str, str, list[str]]] = {
    "many names": ("/".join(["**", "*a*"] * 10), "/".join(["**", "*b*"] * 10), []),
    "many stars": ("*a" * 39 + "*x", "*b" * 39 + "*x", []),
    "many braces": (CHOICES + "*a*b" * 14, CHOICES + "*b*a" * 14 + "q", []),
    "stars excluded": (
        "*a*b" * 20,
        "*b*a" * 20,
        [f"{CHOICES}*{n}{'*a*b' * 13}" for n in range(49)],
    ),
    "names excluded": ("**", "**/x*", [f"**/{CHOICES}{'*ab' * 15}{n}" for n in range(49)]),
}


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_patterns_are_answered_and_then_taken_to_overlap(name: str) -> None:
    one, other, excluded = HOSTILE[name]
    parsed = parse_path_set([one, *(f"!{text}" for text in excluded)], ROOT)
    opposite = parse_path_set([other], ROOT)
    assert isinstance(parsed, PathSet)
    assert isinstance(opposite, PathSet)

    answer = overlap(parsed, opposite)

    assert answer is not None
    assert answer == WITNESS_TOO_COMPLEX or covers(parsed, answer)
    assert isinstance(parse_path_set(["*a" * 41], ROOT), PatternFault), "more are refused"
