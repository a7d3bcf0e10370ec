"""Twenty models that misbehave, over HTTP: none is a success without proof, and all are explained.

Each is known by the goal of its work; which of its answers comes next is counted in the request.
"""

import json
from collections.abc import Generator, Sequence
from typing import Any

import msgspec
import pytest

from interlock.app.runs.inbox import list_cards
from interlock.app.unattended import orders
from interlock.app.unattended.delivery import check_deliveries
from interlock.core.ids import SessionId
from interlock.core.unattended.order import DeliveryWish, UnattendedState
from tests.agents.models.fake_provider import FakeProvider, Reply, Request, running_provider
from tests.agents.models.wires import ANTHROPIC, KEY, OPENAI, Wire
from tests.core.session.secret_examples import GITHUB_TOKEN
from tests.driver.stage import COMMIT, PLACE, Stage, git
from tests.effort import EFFORT
from tests.scenes import linear

PROOF = "grep -q ok app.py && sh test_app.sh"
WRITE = ("Write", {"file_path": "app.py", "content": "ok\n"})
WRITE_WRONG = ("Write", {"file_path": "app.py", "content": "wrong\n"})
WRITE_SECRET = ("Write", {"file_path": "app.py", "content": f"ok\ntoken = '{GITHUB_TOKEN}'\n"})
WRITE_TEST = ("Write", {"file_path": "tests/test_app.py", "content": "assert True\n"})
READ = ("Read", {"file_path": "README.md"})
SAYS_PASSED = {"kind": "verification", "command": "true", "exitCode": 0, "summary": "It passed."}


def done(*files: str, artifacts: Sequence[object] = ()) -> tuple[str, Any]:
    handoff = {
        "kind": "coding_handoff",
        "branchName": "work",
        "keyDecisions": ["one"],
        "knownLimitations": [],
        "testsAdded": [],
        "filesChanged": files or ["app.py"],
    }
    return "complete_step", {"notes": "It is done.", "artifacts": [handoff, *artifacts]}


class Say(msgspec.Struct, frozen=True):
    """An answer: a text, calls, and how it ends."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    stop: str = ""
    status: int = 200
    error: str = ""
    then: Any = "end"
    pause_seconds: float = 0


class Model(msgspec.Struct, frozen=True):
    answers: tuple[Say, ...]
    """The last one is repeated."""
    told: str
    """Part of the reason in the inbox; empty for a success, which is not there."""
    limits: dict[str, int] = {}
    proof: str = PROOF
    reply: str = ""
    """The user's answer to its question."""


def calls(*made: tuple[str, Any], **more: Any) -> Say:
    return Say(calls=made, **more)


FINISH = (calls(WRITE), calls(done()))
MODELS = {
    "invalid JSON": Model((calls(("Bash", "{not json")),), "calls could not be understood"),
    "unknown tool": Model((calls(("Sing", {})),), "calls could not be understood"),
    "loop": Model((calls(READ),), "the same call again and again"),
    "empty": Model((Say(),), "its last answers called no tool"),
    "cut": Model((Say("I write", stop="length"),), "cut off at `output_tokens`"),
    "refusing": Model((Say("No.", stop="refusal"),), "content filter stopped"),
    "overlong": Model((Say(status=400, error="prompt is too long"),), "prompt is too long"),
    "parallel": Model((calls(READ, WRITE), calls(done())), ""),
    "early end": Model((Say("All is done!"),), "“All is done!”"),
    "lying": Model((calls(WRITE_WRONG), calls(done())), "failed with exit code 1"),
    "choosing true": Model(
        (calls(WRITE), calls(done(artifacts=[SAYS_PASSED]))), "no command proves", proof=""
    ),
    "secrets": Model((calls(WRITE_SECRET), calls(done())), "app.py:2 (github-pat)"),
    "asking": Model(
        (calls(("ask_user", {"question": "Which name?"})), *FINISH), "Which name?", reply="app"
    ),
    "ignoring limits": Model(
        tuple(calls(("Bash", {"command": f"echo {n}"})) for n in range(9)),
        "the limit of 6 turns is reached",
        limits={"turns": 6},
    ),
    "4xx": Model((Say(status=401, error="bad key"),), "bad key"),
    "5xx": Model((Say(status=500, error="oops"), *FINISH), ""),
    "slow": Model((calls(WRITE, pause_seconds=0.4), calls(done())), ""),
    "disconnecting": Model((calls(WRITE, then="cut"), *FINISH), ""),
    "changing tests": Model(
        (calls(WRITE, WRITE_TEST), calls(done("app.py", "tests/test_app.py"))), ""
    ),
    "wrong artifact": Model(
        (calls(("complete_step", {"artifacts": "none"})),), "not be understood"
    ),
}
STOPS = {
    "openai": {"length": "length", "refusal": "content_filter"},
    "anthropic": {"length": "max_tokens", "refusal": "refusal"},
}


def reply_of(wire: Wire, failed: dict[str, int], request: Request) -> Reply:
    """The next answer of the model for whose goal it is asked."""
    body = request.body.decode()
    name = next(name for name in MODELS if f"Goal: {name}." in body)
    number = sum(one["role"] == "assistant" for one in request.json["messages"])
    answers = MODELS[name].answers
    if failed.get(name):  # an answer that failed is not in the conversation
        number += failed[name]
    say = answers[min(number, len(answers) - 1)]
    if say.status != 200 or say.then == "cut":
        failed[name] = failed.get(name, 0) + (len(answers) > 1)
    if say.status != 200:
        error = {"error": {"type": "error", "message": say.error}}
        return Reply(json.dumps(error).encode(), status=say.status)
    made = tuple(
        (f"call_{number}_{index}", tool, given if isinstance(given, str) else json.dumps(given))
        for index, (tool, given) in enumerate(say.calls)
    )
    ends = {"stop": STOPS[wire.provider][say.stop]} if say.stop else {}
    if made:
        ends = {"stop": wire.tools_stop}
    texts = (say.text,) if say.text else ()
    stream = wire.stream(texts=texts, calls=made, **ends)
    body_sent = stream[: len(stream) // 2] if say.then == "cut" else stream
    return Reply(body_sent, then=say.then, pause_seconds=say.pause_seconds)


class Worked(msgspec.Struct, frozen=True):
    stage: Stage
    provider: FakeProvider
    sessions: dict[str, SessionId]


def names_for(wire: Wire) -> list[str]:
    """In `make test` each protocol has every other model, and in `make long` all of them."""
    return list(MODELS) if EFFORT == "long" else list(MODELS)[wire is ANTHROPIC :: 2]


@pytest.fixture(scope="module", params=[OPENAI, ANTHROPIC], ids=lambda wire: wire.provider)
def worked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Worked]:
    """All of them at work at once."""
    wire: Wire = request.param
    with running_provider() as provider:
        failed: dict[str, int] = {}
        provider.reply_to = lambda asked: reply_of(wire, failed, asked)
        settings = f'base_url = "{provider.url}{wire.path}"\nmax_sessions = 20'
        with Stage(tmp_path_factory.mktemp("models"), settings=settings) as stage:
            (stage.repository / "test_app.sh").write_text("exit 0\n")
            stage.install(linear(1, "one"))
            git(stage.repository, *COMMIT, "--allow-empty", "-m", "begin")
            sessions = {
                name: stage.order(
                    f"{name}.",
                    "one",
                    model=f"{wire.provider}:{wire.model}",
                    limits=MODELS[name].limits,
                    proof=MODELS[name].proof,
                    delivery=DeliveryWish(("push",)),
                )
                for name in names_for(wire)
            }
            stage.start_driver(OPENAI_API_KEY=KEY, ANTHROPIC_API_KEY=KEY)
            yield Worked(stage, provider, sessions)


def settled(worked: Worked, name: str) -> UnattendedState:
    return worked.stage.wait_for(worked.sessions[name], "done", "parked")


@pytest.mark.parametrize("number", range(len(names_for(OPENAI))))
def test_the_end_is_true_and_explained_in_the_inbox(worked: Worked, number: int) -> None:
    name = list(worked.sessions)[number]
    stage, session, model = worked.stage, worked.sessions[name], MODELS[name]
    state = settled(worked, name)
    if state.outcome == "success":
        assert all(proof.has_passed for proof in state.proofs)
        assert state.proofs, "no success without a proof"
    told = state.detail if state.outcome != "success" else objections(stage, session, state)
    if model.told:
        assert model.told in told, (state.status, told)
    else:
        assert (state.outcome, told) == ("success", ""), state.detail
    if state.outcome != "success":
        (card,) = [one for one in list_cards(stage.app) if session in one.id]
        assert model.told in card.question
    if model.reply:
        orders.steer_work(stage.app, session, model.reply, place=PLACE)
        stage.wait_until(lambda: stage.state(session).is_over, "its end", session)
        assert stage.state(session).outcome == "success"


def objections(stage: Stage, session: SessionId, state: UnattendedState) -> str:
    git(
        stage.repository, "config", "--replace-all", "remote.origin.url", str(stage.home / "remote")
    )
    checked = check_deliveries(stage.app, session, state, accepts_secrets=False)
    return " ".join(one.objection for one in checked)


def test_changed_tests_are_listed_in_the_words_of_the_delivery(worked: Worked) -> None:
    name = next((one for one in ("changing tests", "secrets") if one in worked.sessions), "")
    session, state = worked.sessions[name], settled(worked, name)

    (checked,) = check_deliveries(worked.stage.app, session, state, accepts_secrets=False)

    listed = "Changed tests: `tests/test_app.py`" in checked.plan.description
    assert listed == (name == "changing tests")
