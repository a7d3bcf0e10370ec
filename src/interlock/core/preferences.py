"""Preferences: the autonomy of an agent, and what passes with a gap instead of stopping the run."""

from typing import Literal, get_args

import msgspec

Autonomy = Literal["guided", "full_auto_stop_on_user_deps", "full_auto_never_stop"]
RiskPolicy = Literal["conservative", "balanced", "aggressive"]

# The strictest first.
AUTONOMIES: tuple[Autonomy, ...] = get_args(Autonomy)
AUTONOMY_MEANINGS: dict[Autonomy, str] = {
    "guided": "the agent waits for confirmations, answers and approvals",
    "full_auto_stop_on_user_deps": "no confirmations; the agent stops only for user decisions",
    "full_auto_never_stop": "the agent never waits; decisions for the user become gaps",
}
RISK_POLICIES: tuple[RiskPolicy, ...] = get_args(RiskPolicy)


class Preferences(msgspec.Struct, frozen=True, rename="camel"):
    autonomy: Autonomy = "guided"
    risk_policy: RiskPolicy = "conservative"


class Wish(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Preferences of which some may be left open."""

    autonomy: Autonomy | None = None
    risk_policy: RiskPolicy | None = None


def loosens(autonomy: str | None, risk_policy: str | None) -> bool:
    """Return whether these may let an agent do more by itself than the strictest do."""
    return bool({autonomy, risk_policy} - {None, "", AUTONOMIES[0], RISK_POLICIES[0]})


def autonomy_named(name: str) -> Autonomy | None:
    return next((autonomy for autonomy in AUTONOMIES if autonomy == name), None)


def apply_wish(base: Preferences, wish: Wish) -> Preferences:
    return Preferences(wish.autonomy or base.autonomy, wish.risk_policy or base.risk_policy)


def apply_wish_where_stricter(base: Preferences, wish: Wish) -> Preferences:
    """Apply `wish` as far as it is stricter: all that an untrusted project or an agent may ask."""
    wished = apply_wish(base, wish)
    return Preferences(
        AUTONOMIES[min(map(AUTONOMIES.index, (base.autonomy, wished.autonomy)))],
        RISK_POLICIES[min(map(RISK_POLICIES.index, (base.risk_policy, wished.risk_policy)))],
    )


def leniency_warnings(chosen: Preferences, recommended: Wish | None) -> tuple[str, ...]:
    """Return where `chosen` is less strict than recommended, in words."""
    if recommended is None:
        return ()
    warnings: list[str] = []
    autonomy, risk = recommended.autonomy, recommended.risk_policy
    if autonomy and AUTONOMIES.index(chosen.autonomy) > AUTONOMIES.index(autonomy):
        warnings.append(
            f"This workflow recommends autonomy {autonomy}; you run it {chosen.autonomy}."
        )
    if risk and RISK_POLICIES.index(chosen.risk_policy) > RISK_POLICIES.index(risk):
        warnings.append(
            f"This workflow recommends risk policy {risk}; you run it {chosen.risk_policy}."
        )
    return tuple(warnings)
