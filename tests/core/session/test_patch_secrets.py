"""What a patch adds: every line with its place, whatever the line looks like."""

from interlock.core.session.patch_secrets import (
    added_blocks,
    find_secrets_in_commit,
    find_secrets_in_patch,
)
from tests.core.session.secret_examples import GITHUB_TOKEN, pem

TOKEN = GITHUB_TOKEN
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


def test_each_added_block_has_its_file_and_first_line() -> None:
    assert list(added_blocks(PATCH)) == [
        ("a.py", 3, ["new = 1", "+++ b/other.py"]),
        ("käse b.txt", 1, ["@@ -1 +1 @@", TOKEN]),
    ]


def test_a_patch_that_is_cut_off_is_read_to_its_end() -> None:
    cut = f"+++ b/a.txt\n@@ -0,0 +1,9 @@\n+one\n+{TOKEN}"

    assert [one.where for one in find_secrets_in_patch(cut)] == ["a.txt:2"]


def test_a_secret_of_several_lines_has_the_place_of_its_first() -> None:
    lines = ["one", *pem().splitlines()]
    added = "\n".join(f"+{line}" for line in lines)
    patch = f"+++ b/a.txt\n@@ -0,0 +7,{len(lines)} @@\n{added}\n"

    found = find_secrets_in_patch(patch)

    assert [(one.where, one.kind) for one in found] == [("a.txt:8", "private-key")]


def test_a_secret_is_found_where_it_is_added_and_not_where_it_is_removed() -> None:
    found = list(find_secrets_in_patch(PATCH))

    assert [(one.where, one.kind) for one in found] == [("käse b.txt:2", "github-pat")]


def test_a_message_holds_no_secret_of_a_known_shape_and_may_speak_of_tokens() -> None:
    found = find_secrets_in_commit(f"Fix it\n\ntoken: refreshed\n{TOKEN}\n", PATCH)

    assert [one.where for one in found] == ["käse b.txt:2", "the message of the commit"]
