"""What becomes overdue while nobody looks: approvals and reviews whose deadline has passed.

The first reader after a deadline decides it. The executor is a reader that looks by itself.
"""

from interlock.app.context import App
from interlock.app.protocol.feature_reviews import settle_overdue_reviews
from interlock.app.runs import approvals


def settle_overdue(app: App) -> None:
    try:
        approvals.list_pending(app)
    finally:
        settle_overdue_reviews(app)
