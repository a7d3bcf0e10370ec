"""Ages in words: how long ago something was."""


def time_ago(then_ms: int, now_ms: int) -> str:
    seconds = max(0, now_ms - then_ms) // 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"
