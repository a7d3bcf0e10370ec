"""What looks like a secret is found by its form, and finding it takes no longer for bad text."""

import pytest

from interlock.core.session.secrets import SuspectedSecret, find_suspected_secrets

SECRETS = {
    "private key": "-----BEGIN RSA PRIVATE KEY-----",
    "AWS access key": "AKIA" + "A1B2" * 4,
    "GitHub token": "ghp_" + "a1" * 18,
    "API key": "sk-" + "ant-x1" * 5,
    "Slack token": "xoxb-" + "1234567890-ab",
    "JSON web token": f"eyJ{'a' * 12}.eyJ{'b' * 12}.{'c' * 12}",
    "password": "Password: 'hunter2hunter2'",
}


@pytest.mark.parametrize("kind", SECRETS)
def test_each_form_is_found_among_words_and_shown_by_its_beginning(kind: str) -> None:
    secret = SECRETS[kind]

    found = list(find_suspected_secrets("event 3", f"Ünïcode, then {secret} and more"))

    assert found == [SuspectedSecret("event 3", kind, secret[:12] + "…")]


def test_plain_words_are_no_secrets() -> None:
    text = "The token is in the keyring. Password policy: none. AKIA is a prefix; sk-short too."

    assert list(find_suspected_secrets("event 1", text)) == []


def test_text_that_was_made_to_take_long_does_not() -> None:
    """With backtracking a tenth of this takes minutes."""
    assert list(find_suspected_secrets("blob", "-eyJ" * 500_000)) == []
