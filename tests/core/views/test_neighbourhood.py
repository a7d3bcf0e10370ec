"""What lies around a note, laid out."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.views.neighbourhood import (
    COLUMN_SPACING,
    Neighbourhood,
    Relation,
    neighbourhood,
    svg_curve,
)

NAMES = st.sampled_from("abcdefgh")
RELATIONS = st.lists(st.builds(Relation, NAMES, NAMES, st.sampled_from(["links_to", "needs"])))


def cells(laid: Neighbourhood) -> dict[str, tuple[int, int]]:
    return {placed.name: (placed.lane, placed.row) for placed in laid.names}


def test_what_links_here_is_on_the_left_and_what_is_linked_on_the_right() -> None:
    relations = [Relation("m", "out", "x"), Relation("in", "m", "x"), Relation("m", "both", "x")]
    laid = neighbourhood("m", [*relations, Relation("both", "m", "y")], depth=1)

    assert cells(laid) == {"m": (2, 0), "out": (4, 0), "both": (4, 1), "in": (0, 0)}
    assert (laid.width, laid.height) == (5, 2)


def test_links_between_two_are_one_line_with_every_kind_once() -> None:
    relations = [Relation("m", "a", kind) for kind in ("needs", "links_to", "needs")]
    [line] = neighbourhood("m", [*relations, Relation("a", "m", "blocks")], depth=1).lines

    assert (line.source, line.target) == ("m", "a")
    assert line.kinds == ("needs", "links_to")
    assert line.back == ("blocks",)


def test_what_is_further_away_stays_on_the_side_of_what_led_there() -> None:
    relations = [Relation("in", "m", "x"), Relation("in", "far", "x"), Relation("far", "end", "x")]
    laid = neighbourhood("m", relations, depth=2)

    assert cells(laid) == {"m": (4, 0), "in": (2, 0), "far": (0, 0)}


def test_a_note_alone_is_alone_though_it_names_itself() -> None:
    laid = neighbourhood("m", [Relation("m", "m", "x"), Relation("a", "b", "x")], depth=3)

    assert cells(laid) == {"m": (0, 0)}
    assert laid.lines == ()


def test_a_word_at_a_line_stands_beside_the_outer_node_and_grows_away_from_it() -> None:
    relations = [Relation("m", "out", "x"), Relation("in", "m", "x")]
    out, into = neighbourhood("m", relations, depth=1).lines

    assert out.label is not None
    assert into.label is not None
    assert (4 < out.label[0] < 4.5, out.is_rightward) == (True, False)
    assert (0.5 < into.label[0] < 1, into.is_rightward) == (True, True)


@given(relations=RELATIONS, depth=st.integers(1, 3))
def test_nothing_lies_on_another_and_every_line_joins_two_that_are_there(
    relations: list[Relation], depth: int
) -> None:
    laid = neighbourhood("a", relations, depth=depth)
    places = cells(laid)
    pairs = [frozenset((line.source, line.target)) for line in laid.lines]

    assert len(set(places.values())) == len(places)
    assert laid.names[0].name == "a"
    assert all(0 <= lane < laid.width and 0 <= row < laid.height for lane, row in places.values())
    assert all(abs(lane - places["a"][0]) <= depth * COLUMN_SPACING for lane, _ in places.values())
    assert len(set(pairs)) == len(pairs), "one line for two"
    wanted = {
        frozenset((one.source, one.target))
        for one in relations
        if one.source != one.target and {one.source, one.target} <= set(places)
    }
    assert set(pairs) == wanted
    assert neighbourhood("a", relations, depth=depth) == laid
    assert all(svg_curve(line, lane_px=100, row_px=50).startswith("M") for line in laid.lines)
