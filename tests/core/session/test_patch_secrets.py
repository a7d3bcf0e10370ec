"""What a patch adds: every line with its place, whatever the line looks like."""

import pytest

from interlock.core.session.patch_secrets import (
    added_lines,
    find_secrets_in_commit,
    find_secrets_in_patch,
)

TOKEN = "ghp_" + "a1" * 20
PATCH = f"""\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -3 +3,2 @@ def f():
-old = "{TOKEN}"
+new = 1
++++ b/other.py
@@ -9,2 +11,0 @@
-gone
--- a/gone
diff --git a/käse b.txt b/käse b.txt
new file mode 100644
--- /dev/null
+++ b/käse b.txt\t
@@ -0,0 +1,2 @@
+@@ -1 +1 @@
+{TOKEN}
\\ No newline at end of file
"""


def test_each_added_line_has_its_file_and_number() -> None:
    assert list(added_lines(PATCH)) == [
        ("a.py:3", "new = 1"),
        ("a.py:4", "+++ b/other.py"),
        ("käse b.txt:1", "@@ -1 +1 @@"),
        ("käse b.txt:2", TOKEN),
    ]


@pytest.mark.parametrize(
    ("file", "line", "is_suspect"),
    [
        ("a.py", "def log_in(token: SessionToken) -> None:", False),
        ("a.py", "password = read_password_file()", False),
        ("a.py", "password = 'hunter2hunter2'", True),
        ("a.tsx", "const password = `hunter2hunter2`", True),
        ("a.py", f"key = {TOKEN}", True),
        (".env", "PASSWORD=hunter2hunter2", True),
        ("config.yaml", "password: hunter2hunter2", True),
    ],
)
def test_an_unquoted_password_is_none_in_a_program(
    file: str, line: str, *, is_suspect: bool
) -> None:
    patch = f"+++ b/{file}\n@@ -0,0 +1 @@\n+{line}\n"

    assert bool(list(find_secrets_in_patch(patch))) == is_suspect


def test_a_secret_is_found_where_it_is_added_and_not_where_it_is_removed() -> None:
    found = list(find_secrets_in_patch(PATCH))

    assert [(one.where, one.kind) for one in found] == [("käse b.txt:2", "GitHub token")]


def test_a_message_holds_no_secret_of_a_known_shape_and_may_speak_of_tokens() -> None:
    found = find_secrets_in_commit(f"Fix it\n\ntoken: refreshed\n{TOKEN}\n", PATCH)

    assert [one.where for one in found] == ["käse b.txt:2", "the message of the commit"]
