"""The user's section `[driver]`: which model, how many at a time, within which limits, where."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.core.unattended.conversation import Usage
from interlock.core.unattended.order import (
    COST_MICROS_DEFAULT,
    MINUTES_DEFAULT,
    TOKENS_DEFAULT,
    TURNS_DEFAULT,
    Limits,
    Runner,
    SandboxWish,
    StuckPolicy,
)
from interlock.workspace.projects.settings import section_in

_Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of orders that name none, as people write them."""

    turns: _Count = TURNS_DEFAULT
    minutes: _Count = MINUTES_DEFAULT
    tokens: _Count = TOKENS_DEFAULT
    cost: Annotated[float, Meta(ge=0, le=1_000_000)] = COST_MICROS_DEFAULT / 1_000_000
    """In dollars."""


class ModelPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The price of a model, in dollars for a million tokens."""

    input: Annotated[float, Meta(ge=0)]
    output: Annotated[float, Meta(ge=0)]
    cache_read: Annotated[float, Meta(ge=0)] | None = None
    """None: as other input."""
    cache_write: Annotated[float, Meta(ge=0)] | None = None

    def price(self, usage: Usage) -> Usage:
        """Return the usage with this price. A dollar for a million tokens is a micro for one."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        uncached = usage.input - usage.cache_read - usage.cache_write
        micros = uncached * self.input + usage.cache_read * read + usage.cache_write * write
        return msgspec.structs.replace(
            usage, cost_micros=round(micros + usage.output * self.output)
        )


class DriverSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A project cannot set any of it: it spends the user's money on the user's machine."""

    model: str = ""
    """As in `anthropic:claude-…`; empty: none is chosen, and work that needs one is refused."""
    runner: Runner = "model"
    client_program: str = "claude"
    """The program of the runner `claude-code`, as the driver finds it."""
    base_url: str = ""
    """Of an endpoint that speaks like the provider; empty: the provider's own."""
    key_file: str = ""
    """A file with the provider's key; empty: the provider's usual variable."""
    max_sessions: Annotated[int, Meta(ge=1, le=64)] = 1
    sandbox: SandboxWish = "auto"
    has_network: bool = msgspec.field(default=False, name="network")
    """Whether tools reach the network."""
    does_commit: bool = msgspec.field(default=True, name="commit")
    """Whether what was changed is committed on the branch of the worktree at the end."""
    on_stuck: StuckPolicy = "park"
    output_tokens: Annotated[int, Meta(ge=256, le=200_000)] = 8_192
    context_tokens: Annotated[int, Meta(ge=0, le=100_000_000)] = 0
    """The tokens that the model can read; 0: by the table of models, or 128,000 if it is not there.

    A longer conversation loses its oldest parts.
    """
    call_seconds: Annotated[int, Meta(ge=1, le=3_600)] = 120
    proof_minutes: Annotated[int, Meta(ge=1, le=24 * 60)] = 30
    """How long a command that proves a result may take."""
    ask: tuple[str, ...] = ()
    """Tools of the driver that need the user's approval for each call."""
    never: tuple[str, ...] = ()
    """Tools that the model does not get."""
    prices: dict[str, ModelPrice] = {}
    """By the name of a model: what counts instead of the table."""
    limits: LimitSettings = LimitSettings()
    autostart: bool = True
    """Whether `interlock up` starts a driver as soon as there is work for one."""

    def price(self, model: str, usage: Usage) -> Usage:
        """Return the usage of a model with the price that the user has set for it, if any."""
        return self.prices[model].price(usage) if model in self.prices else usage

    @property
    def default_limits(self) -> Limits:
        one = self.limits
        return Limits(one.turns, one.minutes, one.tokens, round(one.cost * 1_000_000))


def driver_settings(home: Path) -> DriverSettings:
    """Return the section, or the defaults if there is none.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return section_in(home / "config.toml", "driver", DriverSettings)
