"""Evidence: only the demanded command alone, passed, after the last change, proves a step."""

import pytest

from interlock.core.session.evidence import (
    CommandRecord,
    CommandRun,
    Outcome,
    Proof,
    Unproven,
    bare_command,
    find_proof,
)

MAKE = "make test"


def run(command: str = MAKE, outcome: Outcome = "success", at_ms: int = 100) -> CommandRun:
    return CommandRun(command, outcome, at_ms)


def test_a_run_that_passed_after_the_last_change_is_proof() -> None:
    record = CommandRecord((run(outcome="failure", at_ms=50), run()), changed_ms=100)

    assert find_proof(MAKE, record) == Proof(MAKE, 100)


@pytest.mark.parametrize(
    "command",
    [
        MAKE,
        f"  {MAKE}  ",
        "make   test",
        f"cd /work && {MAKE}",
        f"cd 'a b' && {MAKE}",
        f'cd "a b" &&{MAKE}',
    ],
)
def test_a_change_of_directory_and_white_space_do_not_matter(command: str) -> None:
    assert isinstance(find_proof(MAKE, CommandRecord((run(command),))), Proof)


@pytest.mark.parametrize(
    "command",
    [
        f"{MAKE} | tail -5",
        f"{MAKE} || true",
        f"{MAKE}; true",
        f"true; {MAKE}",
        f"cd a && cd b && {MAKE}",
        f"cd $(pwd) && {MAKE}",
        f"echo {MAKE}",
        f"{MAKE} &",
    ],
)
def test_a_command_among_others_is_no_proof(command: str) -> None:
    doubt = find_proof(MAKE, CommandRecord((run(command),)))

    assert isinstance(doubt, Unproven)
    assert "run it alone" in doubt.reason
    assert not doubt.is_unseen


@pytest.mark.parametrize(
    ("runs", "changed_ms", "reason", "is_failure", "is_unseen"),
    [
        ((), 0, "no run of it was recorded", False, True),
        ((run("make lint"),), 0, "no run of it was recorded", False, False),
        ((run("make lint", "unknown"),), 0, "no run of it was recorded", False, True),
        ((run(), run(outcome="failure", at_ms=101)), 0, "it failed when", True, False),
        ((run(),), 101, "files have changed since", False, False),
        ((run(outcome="unknown"),), 0, "does not tell how it ended", False, True),
        ((run(outcome="unknown"),), 101, "files have changed since", False, False),
    ],
)
def test_other_records_prove_nothing(
    runs: tuple[CommandRun, ...],
    changed_ms: int,
    reason: str,
    *,
    is_failure: bool,
    is_unseen: bool,
) -> None:
    doubt = find_proof(MAKE, CommandRecord(runs, changed_ms))

    assert isinstance(doubt, Unproven)
    assert reason in doubt.reason
    assert (doubt.is_failure, doubt.is_unseen) == (is_failure, is_unseen)


@pytest.mark.parametrize("command", ["test -s docs/tax.md", "test -s 'docs/tax.md'"])
def test_quotes_around_a_plain_word_do_not_matter(command: str) -> None:
    record = CommandRecord((run(command),))

    assert isinstance(find_proof('test -s "docs/tax.md"', record), Proof)


def test_quotes_that_change_the_meaning_matter() -> None:
    assert bare_command("make test '&&' true") != bare_command("make test && true")
    assert bare_command("'A=b' make") != bare_command("A=b make")


def test_a_run_with_more_arguments_is_not_called_a_list_of_commands() -> None:
    doubt = find_proof(MAKE, CommandRecord((run(f"{MAKE} -k show"),)))

    assert isinstance(doubt, Unproven)
    assert doubt.reason == f"only a longer command was run (`{MAKE} -k show`); run it alone"


def test_quotes_keep_their_content() -> None:
    assert bare_command("cd x && pytest -k 'a && b'") == "pytest -k 'a && b'"
