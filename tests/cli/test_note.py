"""`interlock note`, as typed: what is printed, what is refused, and with which exit code."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Said, Terminal
from tests.cli.note_files import put, run


def test_the_text_comes_in_on_stdin(folder: Path) -> None:
    done = run("note", "write", "From a pipe", given="line\r\nжёлтый\n".encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"created: From a pipe.md, version ")
    assert (folder / "From a pipe.md").read_bytes().endswith("line\r\nжёлтый\n".encode())

    assert run("note", "edit", "from-a-pipe", "append", given=b"end").returncode == 0
    assert (folder / "From a pipe.md").read_bytes().rstrip().endswith(b"end")


def test_bytes_that_are_not_utf_8_are_read_back_as_they_are(folder: Path) -> None:
    content = b"\xef\xbb\xbf# Caf\xe9\r\n\0\xff no newline at the end"
    put(folder, "odd.md", content)

    read = run("note", "read", "odd")
    assert read.stdout == content
    assert b"not UTF-8" in read.stderr
    as_json = json.loads(run("note", "read", "odd", "--json").stdout)["text"]
    assert "Caf\N{REPLACEMENT CHARACTER}" in as_json
    assert run("note", "write", "Again", given=b"caf\xe9\n").returncode == 0
    assert (folder / "Again.md").read_bytes().endswith(b"caf\xe9\n")
    assert run("note", "edit", "odd", "append", given=b"\xfe").returncode == 0
    assert (folder / "odd.md").read_bytes().startswith(content)


def test_what_is_there_is_not_written_over_and_the_difference_is_shown(
    typed: Terminal, folder: Path
) -> None:
    version = json.loads(typed("note", "write", "A", "--content", "mine\n", "--json").out)[
        "version"
    ]

    refused = typed("note", "write", "A", "--content", "yours\n")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: `A.md` is there already, and nothing was written.")
    assert "\n  | -mine\n  | +yours\n" in refused.err
    assert f"--overwrite {version}" in refused.err
    stale = typed("note", "write", "A", "--content", "yours\n", "--overwrite", "0" * 12)
    assert (stale.code, "is not what you have read" in stale.err) == (1, True)
    as_json_too = typed("note", "write", "A", "--content", "yours\n", "--json")
    assert (as_json_too.code, json.loads(as_json_too.out)["code"]) == (1, "note_exists")
    done = typed("note", "write", "A", "--content", "yours\n", "--overwrite", version)
    assert (done.code, done.out.split(",")[0]) == (0, "replaced: A.md")
    assert (folder / "A.md").read_text().endswith("yours\n")


def test_frontmatter_is_set_and_removed(typed: Terminal, folder: Path) -> None:
    typed("note", "write", "A", "--content", "x", "--tag", "one", "--tag", "two", "--set", "by=me")
    assert "tags:\n  - one\n  - two\n" in (folder / "A.md").read_text()
    assert "by: me\n" in (folder / "A.md").read_text()

    said = typed("note", "edit", "A", "--set", "status=done", "--unset", "by")

    assert said.out.startswith("changed: A.md, version ")
    assert "status: done\n" in (folder / "A.md").read_text()
    assert "by: me" not in (folder / "A.md").read_text()


def test_each_way_of_editing(typed: Terminal, folder: Path) -> None:
    put(folder, "n.md", "# N\n\n## One\n\na\n\n## Two\n\nb\n")

    def edited(*arguments: str) -> str:
        assert typed("note", "edit", "n", *arguments).code == 0
        return (folder / "n.md").read_text()

    assert edited("prepend", "--content", "top").startswith("top\n")
    assert edited("find-replace", "--find", "top\n", "--content", "").startswith("# N\n")
    assert "\n\nc\n\n## Two" in edited("insert-before", "--section", "Two", "--content", "c")
    assert edited("insert-after", "--section", "Two", "--content", "d").endswith("b\n\nd\n")
    version = json.loads(typed("note", "read", "n", "--json").out)["version"]
    replaced = edited(
        *("replace-section", "--section", "## One", "--content", "new", "--version", version)
    )
    assert "## One\n\nnew\n" in replaced
    assert edited("append", "--content", "end").endswith("end\n")


def test_a_note_that_is_not_there_is_refused_with_those_that_are_like_it(
    typed: Terminal, folder: Path
) -> None:
    put(folder, "specs/storage.md", "# Storage\n")

    refused = typed("note", "read", "storage layer")

    assert refused == Said(
        1,
        "",
        "error: There is no note `storage layer`\n\nhint: Name one of those, or search for it.\n"
        "  interlock note read specs/storage.md\n  interlock note search 'storage layer'\n",
    )
    problem = typed("note", "read", "storage layer", "--json")
    assert problem.code == 1
    assert json.loads(problem.out)["commands"] == [
        "interlock note read specs/storage.md --json",
        "interlock note search 'storage layer'",
    ]


@pytest.mark.parametrize("name", ["../outside", "a\0b"])
def test_no_name_leads_out_of_the_folder(
    typed: Terminal, folder: Path, tmp_path: Path, name: str
) -> None:
    put(folder, "n.md", "text")
    (tmp_path / "outside.md").write_text("secret")

    assert typed("note", "read", name).code == 1
    assert typed("note", "move", "n", f"{name}.md").code == 1
    assert typed("note", "write", "T", "--folder", name, "--content", "x").code == 1
    assert sorted(tmp_path.rglob("*.md")) == [folder / "n.md", tmp_path / "outside.md"]
    assert typed("note", "read", "/etc/passwd").code == 1
    assert typed("note", "write", "T", "--folder", "/etc", "--content", "x").code == 0
    assert (folder / "etc" / "T.md").exists(), "an absolute folder is one of ours too"


def test_a_note_is_moved_and_its_links_still_lead_to_it(typed: Terminal, folder: Path) -> None:
    put(folder, "a.md", "see [[Bee]] and [[sub/bee]]")
    put(folder, "sub/bee.md", "---\ntitle: Bee\npermalink: bees/bee\n---\n")

    said = typed("note", "move", "bees/bee", "other/wasp")

    assert (said.code, said.out.split(",")[0]) == (0, "moved: other/wasp.md")
    assert said.err == "hint: links to the old name stand in a.md\n"
    assert "-> links_to other/wasp.md" in typed("note", "context", "a").out
    assert "-> links_to sub/bee (not written)" in typed("note", "context", "a").out
