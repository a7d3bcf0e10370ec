"""Secrets are found by rules; what only looks like one is left; bad text takes no longer."""

import pytest

from interlock.core.session.secrets import (
    SecretSpan,
    find_secrets,
    find_suspected_secrets,
    has_placeholder,
    redact_secrets,
)
from tests.core.session.secret_examples import (
    GITHUB_TOKEN,
    look_alikes,
    pem,
    true_examples,
    vendor_secrets,
)

SECRETS = vendor_secrets()


def test_a_scan_of_files_finds_true_secrets_and_leaves_look_alikes() -> None:
    examples, innocent = list(true_examples()), list(look_alikes())
    assert len(SECRETS) >= 30
    assert len(examples) >= 200
    assert len(innocent) >= 200

    missed = [
        text
        for file, text, secret in examples
        if secret not in [text[one.start : one.end] for one in find_secrets(text, file)]
    ]
    alarms = [text for file, text in innocent if find_secrets(text, file)]

    found = len(examples) - len(missed)
    assert found / len(examples) >= 0.95, "\n".join(missed)
    assert found / (found + len(alarms)) >= 0.98, "\n".join(alarms)


def test_a_secret_is_named_by_its_rule_and_shown_by_its_beginning() -> None:
    (found,) = find_suspected_secrets("event 3", f"Ünïcode, then {GITHUB_TOKEN} and more")

    assert (found.where, found.kind, found.shown) == ("event 3", "github-pat", "ghp_…")


def test_each_secret_of_a_text_is_replaced_as_a_whole_and_the_rest_stays() -> None:
    key = pem()
    shown = redact_secrets(
        f"a {GITHUB_TOKEN}\n{key}\npassword = 'x7-hunter-2' # b\n.sk-toggle__label-arrow"
    )

    assert shown == (
        "a [secret removed: github-pat]\n[secret removed: private-key]\n"
        "password = '[secret removed: quoted-password]' # b\n.sk-toggle__label-arrow"
    )
    assert has_placeholder(shown)
    assert not has_placeholder("[secret removed]")
    assert redact_secrets(shown) == shown


def test_what_several_rules_find_is_one_secret_with_the_most_telling_name() -> None:
    text = f'"gitlab_token": "{SECRETS["GITLAB_TOKEN"]}"'

    assert find_secrets(text) == [SecretSpan(17, len(text) - 1, "gitlab-pat")]


@pytest.mark.parametrize("text", ["-eyJ" * 500_000, "password: käse " * 50_000, "://:" * 500_000])
@pytest.mark.timeout(30)
def test_text_that_was_made_to_take_long_does_not(text: str) -> None:
    """With backtracking a tenth of this takes minutes."""
    assert find_secrets(text) == []
