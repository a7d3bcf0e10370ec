"""What a project's config can do: tighten always, loosen only where it is trusted."""

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.gate.decide import GateDecision, decide
from interlock.core.gate.rules import (
    OPENABLE,
    RULES,
    Bypass,
    Rule,
    RuleClass,
    wrongly_advisory_rules,
)
from interlock.core.gate.state import (
    MODES,
    PROFILES,
    GateRow,
    GateState,
    Policy,
    UnknownState,
    mode_change_objection,
)
from interlock.core.gate.tool_call import ToolCall
from interlock.core.gate.trust import (
    ProjectPolicy,
    UserPolicy,
    effective_policy,
    loosening_settings,
)
from tests.core.gate.host_calls import tool_call

HOME = "/home/interlock"
CALLS: dict[str, ToolCall] = {
    name: tool_call(tool, given_)
    for name, tool, given_ in (
        ("read", "Read", {"file_path": "a"}),
        ("web", "WebFetch", {"url": "https://nowhere.invalid"}),
        ("edit", "Write", {"file_path": "a"}),
        ("edit of a protected path", "Write", {"file_path": "deploy/a"}),
        ("edit of the config", "Write", {"file_path": ".interlock/config.toml"}),
        ("shell that reads", "Bash", {"command": "ls"}),
        ("shell that may write", "Bash", {"command": "make"}),
        ("shell that writes what is protected", "Bash", {"command": "touch deploy/a"}),
        ("the user's command", "Bash", {"command": "interlock trust"}),
        ("coding by itself", "Bash", {"command": "interlock mode coding --task T"}),
        ("listed tool", "mcp__docs__search", {}),
        ("other tool", "mcp__other__thing", {}),
        ("own tool", "mcp__interlock__session", {}),
    )
}
STRICTER = ("allow", "ask", "deny")

classes = st.sampled_from(get_args(RuleClass))
openable = st.dictionaries(st.sampled_from(OPENABLE), st.just("advisory"))


def asked_for(rules: tuple[Rule, ...]) -> st.SearchStrategy[ProjectPolicy]:
    return st.builds(
        ProjectPolicy,
        profile=st.sampled_from(PROFILES),
        protected=st.sampled_from([(), ("deploy/",)]),
        reading_tools=st.sampled_from([(), ("mcp__docs__search",)]),
        agent_may_code=st.booleans(),
        rules=st.dictionaries(st.sampled_from(rules), classes),
    )


bypasses = st.lists(
    st.builds(Bypass, st.just("byp_1"), st.sampled_from(RULES), st.just("why"), st.just(0)),
    max_size=3,
)
states: st.SearchStrategy[GateState] = st.one_of(
    st.builds(
        GateRow,
        st.just("ses_1"),
        st.sampled_from(MODES),
        is_started=st.booleans(),
        task=st.sampled_from(["", "T-1"]),
    ),
    st.just(UnknownState("nobody knows")),
)


def said(state: GateState, policy: Policy, call: ToolCall) -> GateDecision:
    return decide(state, policy, call, home=HOME)


@pytest.mark.invariant("project-only-tightens")
@given(asked_for(RULES), openable, bypasses, states, st.sampled_from(sorted(CALLS)))
def test_a_config_that_nobody_trusts_allows_nothing_that_no_config_would_not(
    asked: ProjectPolicy,
    chosen: dict[Rule, RuleClass],
    open_now: list[Bypass],
    state: GateState,
    name: str,
) -> None:
    mine = UserPolicy(chosen)
    without = effective_policy(ProjectPolicy(), mine, open_now, is_trusted=True).policy
    policy = effective_policy(asked, mine, open_now, is_trusted=False).policy

    before, after = (said(state, one, CALLS[name]) for one in (without, policy))

    assert STRICTER.index(after.answer) >= STRICTER.index(before.answer)
    assert policy.first_mode == "analysis"
    if isinstance(state, GateRow):
        for mode in MODES:
            for flags in product((False, True), repeat=2):
                known = dict(zip(("has_task", "may_code"), flags, strict=True))
                if mode_change_objection(state.mode, mode, without, **known):
                    assert mode_change_objection(state.mode, mode, policy, **known)


@given(asked_for(OPENABLE))
def test_what_is_ignored_is_what_loosens(asked: ProjectPolicy) -> None:
    untrusted = effective_policy(asked, UserPolicy(), (), is_trusted=False)
    trusted = effective_policy(asked, UserPolicy(), (), is_trusted=True)

    assert untrusted.ignored_settings == loosening_settings(asked)
    assert trusted.ignored_settings == ()
    assert (untrusted.policy == trusted.policy) == (not untrusted.ignored_settings)


def test_a_trusted_config_loosens() -> None:
    asked = ProjectPolicy("light", (), ("mcp__docs__search",), rules={"shell.unknown": "advisory"})
    policy = effective_policy(asked, UserPolicy(), (), is_trusted=True).policy
    planning = GateRow("ses_1", "planning", is_started=True)

    assert policy.first_mode == "coding"
    assert said(planning, policy, CALLS["listed tool"]).answer == "allow"
    told = said(planning, policy, CALLS["shell that may write"])
    assert (told.answer, told.rule, told.opened) == ("allow", "shell.unknown", "advisory")
    assert "may do more than read" in told.reason, "the reason is there to be told"


def test_what_the_project_wants_firm_the_user_has_not_opened_in_general() -> None:
    asked = ProjectPolicy(rules={"shell.unknown": "invariant"})
    mine = UserPolicy({"shell.unknown": "advisory", "tool.unlisted": "advisory"})

    assert effective_policy(asked, mine, (), is_trusted=False).policy.advisory == ("tool.unlisted",)


@pytest.mark.invariant("agents-keep-their-rules")
@given(states, st.sampled_from(sorted(CALLS)))
def test_no_bypass_and_no_class_opens_what_binds_the_agent(state: GateState, name: str) -> None:
    everything = Policy(
        protected=("deploy/",),
        agent_may_code=False,
        advisory=RULES,
        bypasses=tuple(Bypass(f"byp_{rule}", rule, "all of it", 0) for rule in RULES),
    )
    closed = said(state, Policy(protected=("deploy/",), agent_may_code=False), CALLS[name])

    opened = said(state, everything, CALLS[name])

    if closed.answer == "allow" or closed.rule not in OPENABLE:
        assert opened == closed
    else:
        assert (opened.answer, opened.rule, opened.reason) == ("allow", closed.rule, closed.reason)
        assert opened.opened == f"byp_{closed.rule}: all of it", "the bypass is named first"


def test_the_rules_that_bind_the_agent_are_firm() -> None:
    firm = {
        "user.only",
        "coding.agreed",
        "path.protected",
        "secret.read",
        "state.unknown",
        "protocol.start",
    }

    assert firm <= set(RULES) - set(OPENABLE)
    assert set(wrongly_advisory_rules(dict.fromkeys(RULES, "advisory"))) == set(RULES) - set(
        OPENABLE
    )
    assert wrongly_advisory_rules(dict.fromkeys(RULES, "invariant")) == []


@pytest.mark.parametrize(
    "policy",
    [
        Policy(advisory=("shell.unknown",)),
        Policy(bypasses=(Bypass("byp_1", "mode.analysis", "why", 0),)),
        Policy(protected=("deploy/",)),
        Policy(reading_tools=("x",)),
        Policy("strict"),
    ],
)
def test_a_policy_with_exceptions_is_not_simple(policy: Policy) -> None:
    assert Policy().is_simple
    assert not policy.is_simple


@pytest.mark.parametrize(
    ("bypass", "holds"),
    [
        (Bypass("byp_1", "shell.unknown", "why", 0), True),
        (Bypass("byp_1", "shell.unknown", "why", 0, "/work"), True),
        (Bypass("byp_1", "shell.unknown", "why", 0, "/work/below"), False),
        (Bypass("byp_1", "shell.unknown", "why", 0, "/wor"), False),
        (Bypass("byp_1", "shell.unknown", "why", 0, until_ms=1001), True),
        (Bypass("byp_1", "shell.unknown", "why", 0, until_ms=1000), False),
    ],
)
def test_a_bypass_holds_where_and_as_long_as_it_was_meant(bypass: Bypass, *, holds: bool) -> None:
    assert bypass.is_active_in("/work", at_ms=1000) == holds


def test_a_path_that_is_protected_as_a_directory_protects_what_is_below() -> None:
    policy = effective_policy(
        ProjectPolicy(protected=("deploy/",)), UserPolicy(), (), is_trusted=False
    ).policy
    coding = GateRow("ses_1", "coding", is_started=True)

    for path in ("deploy/x", "/work/deploy/x", "deploy", "./sub/../deploy/x", "Deploy/x"):
        call = tool_call("Write", {"file_path": path})
        assert said(coding, policy, call).rule == "path.protected", path
    for path in ("deployed/x", "redeploy/x", "x/deploy.txt"):
        call = tool_call("Write", {"file_path": path})
        assert said(coding, policy, call).answer == "allow", path
