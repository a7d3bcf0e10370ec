"""The files in a diff, told apart by git's own marks and by nothing that a file may have in it."""

from interlock.core.views.changed_files import FILE_LINES_MAX, ChangedFile, changed_files

DIFF = """\
diff --git a/importer.py b/importer.py
index 1..2 100644
--- a/importer.py
+++ b/importer.py
@@ -1,3 +1,3 @@ def unpack
 def unpack(data):
--- looks like a header
+++ so does this
diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
\\ No newline at end of file
diff --git a/new.bin b/new.bin
new file mode 100644
Binary files /dev/null and b/new.bin differ
"""


def test_each_file_has_its_name_its_counts_and_its_lines() -> None:
    files = changed_files(DIFF)

    assert [(one.name, one.how, one.added, one.removed) for one in files] == [
        ("importer.py", "changed", 1, 1),
        ("new name.txt", "renamed", 0, 0),
        ("gone.txt", "deleted", 0, 1),
        ("new.bin", "binary", 0, 0),
    ]
    assert [line.kind for line in files[0].lines] == ["hunk", "same", "del", "add"]
    assert changed_files("") == ()


def test_of_a_long_diff_the_first_lines_are_shown_and_all_are_counted() -> None:
    lines = "\n".join(f"+{number}" for number in range(5_000))
    blocks = [f"diff --git a/{n} b/{n}\n+++ b/{n}\n@@ -0,0 +1,5000 @@\n{lines}" for n in range(9)]

    files: tuple[ChangedFile, ...] = changed_files("\n".join(blocks))

    assert [one.added for one in files] == [5_000] * 9
    assert len(files[0].lines) == FILE_LINES_MAX
    assert files[0].left_out == 5_001 - FILE_LINES_MAX
    assert sum(len(one.lines) for one in files) == 4_000
