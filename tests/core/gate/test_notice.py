"""When an agent that runs against the same wall is told to stop."""

from interlock.core.gate.notice import NoticeLimit, due_notice

MINUTE = 60_000
LIMIT = NoticeLimit(denials=3, minutes=10)
NOW = 1_000 * MINUTE


def test_enough_denials_in_the_time_raise_one() -> None:
    assert due_notice([NOW - 1], [], LIMIT, now_ms=NOW) == ""
    notice = due_notice([NOW - 2, NOW - 1], [], LIMIT, now_ms=NOW)
    assert notice == "This was denied 3 times in 10 minutes: stop trying, and ask the user."


def test_what_is_older_does_not_count() -> None:
    assert due_notice([NOW - 10 * MINUTE, NOW - 1], [], LIMIT, now_ms=NOW) == ""
    assert due_notice([NOW - 10 * MINUTE + 1, NOW - 1], [], LIMIT, now_ms=NOW)


def test_what_the_clock_says_comes_later_does_not_count() -> None:
    assert due_notice([NOW + MINUTE, NOW + MINUTE], [], LIMIT, now_ms=NOW) == ""


def test_it_is_said_once_in_the_time() -> None:
    earlier = [NOW - 9 * MINUTE + second * 1000 for second in range(100)]

    assert due_notice(earlier, [NOW - 9 * MINUTE], LIMIT, now_ms=NOW) == ""
    assert due_notice(earlier, [NOW - 10 * MINUTE], LIMIT, now_ms=NOW)
