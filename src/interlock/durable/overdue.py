"""What becomes overdue while nobody looks: approvals whose deadline has passed.

The first reader after a deadline decides it. The executor is a reader that looks by itself.
"""

from interlock.app.context import App
from interlock.app.runs import approvals


def settle_overdue(app: App) -> None:
    approvals.list_pending(app)
