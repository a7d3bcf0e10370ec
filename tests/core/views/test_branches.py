"""Branches beside each other, and loops that are one node: on sessions that were really driven."""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.node_cache import NodeCache
from interlock.app.sessions import session_views
from interlock.app.sessions.branch_comparison import ComparedBranches, compare_branches
from interlock.app.sessions.session_views import ViewedSession, read_nodes, view_session
from interlock.core.views.outline import OutlineFold
from tests.core.views.driven_runs import Driven, step, times
from tests.core.views.test_outline import outline


def viewed_session(driven: Driven) -> ViewedSession:
    viewed = view_session(driven.app, driven.session)
    assert isinstance(viewed, ViewedSession)
    return viewed


def test_steps_of_two_branches_are_paired_in_order(app: App, tmp_path: Path) -> None:
    deep = step("dig", runCondition={"var": "depth", "equals": "full"})
    run = Driven(app, tmp_path, step("plan"), deep, step("build"), step("end"))
    first = run.token
    report = {"kind": "report", "value": 1}
    run.hand_in("short plan", context={"depth": "short"}).hand_in("built", report)
    left = run.tip
    run.hand_in("long plan", token=first, context={"depth": "full"})
    run.hand_in("dug deep").hand_in("built", report)

    found = compare_branches(app, viewed_session(run), left=left, right=run.tip)

    assert isinstance(found, ComparedBranches)
    assert found.fork.created.step_title == "Plan"
    assert [
        (one.title, bool(one.left), bool(one.right), one.is_same) for one in found.comparison.steps
    ] == [
        ("Plan", True, True, False),
        ("Dig", False, True, False),
        ("Build", True, True, True),
    ]
    (change,) = found.comparison.context
    assert (change.key, change.before, change.after) == ("depth", "short", "full")


def test_a_branch_that_is_not_there_is_refused(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("plan"), step("end")).hand_in()

    found = compare_branches(app, viewed_session(run), left="", right="node_0000000000000000")

    assert not isinstance(found, ComparedBranches)


def test_a_long_loop_is_one_node_of_the_graph(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("plan"), times("each", 9, step("do")), step("end"))
    run.hand_in()
    inside = run.hand_in().token
    for _ in range(5):
        run.hand_in()
    run.hand_in("otherwise", token=inside)
    for _ in range(7):
        run.hand_in()

    folded = session_views.folded_graph(app, run.run, run.nodes, opened=(), has_skipped=False)
    graph = folded.graph
    path = [node.title for node in graph.path]
    ((first, each),) = folded.loops.items()

    assert path == ["Plan", "Do", "End"]
    assert each.last_pass == 9
    ids = {node.id for node in graph.nodes}
    assert all(node.parent is None or node.parent in ids for node in graph.nodes)
    assert [node for node in graph.nodes if not node.is_preferred], "the branch hangs at it"
    opened = session_views.folded_graph(app, run.run, run.nodes, opened=(first,), has_skipped=False)
    assert len(opened.graph.nodes) == len(run.nodes.nodes)
    assert not opened.loops


def test_a_fold_counts_the_branches_and_checkpoints_in_it(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, times("each", 3, step("do"), step("test")), step("end"))
    token = run.hand_in().token
    run.hand_in("one way")
    run.hand_in("another way", token=token)
    run.checkpoint("half way")

    whole = outline(run).rows[0]

    assert isinstance(whole, OutlineFold)
    assert (whole.branch_count, whole.checkpoint_count) == (1, 1)


def test_only_what_is_new_is_read_and_what_was_cut_off_is_forgotten(
    app: App, tmp_path: Path
) -> None:
    run = Driven(app, tmp_path, step("plan"), step("build"), step("end"))
    before = read_nodes(app, viewed_session(run))
    assert read_nodes(app, viewed_session(run)) is before
    run.hand_in().hand_in()
    after = read_nodes(app, viewed_session(run))

    stream = viewed_session(run).stream
    cache = NodeCache()
    fresh = cache.nodes(app.reader, stream)
    assert [node.id for node in after.placed] == [node.id for node in fresh.placed]
    assert after.placed[0] is before.placed[0], "it was not read again"
    repaired = msgspec.structs.replace(stream, version=stream.version - 1, end=b"another")
    assert cache.nodes(app.reader, repaired).placed[0] is not fresh.placed[0]
