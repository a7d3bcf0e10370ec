"""The ids of things: the form of each kind, and making one from bytes."""

import hashlib
from typing import NewType

SessionId = NewType("SessionId", str)
ProjectId = NewType("ProjectId", str)
RunId = NewType("RunId", str)
NodeId = NewType("NodeId", str)
AttemptId = NewType("AttemptId", str)
WorkflowId = NewType("WorkflowId", str)
CHECKPOINTS = WorkflowId("interlock.checkpoints")
"""The workflow of runs that follow none, and only keep checkpoints."""
StepId = NewType("StepId", str)
GapId = NewType("GapId", str)
ApprovalId = NewType("ApprovalId", str)
DelegationId = NewType("DelegationId", str)
"""Of ours, or the name that a host gives to its subagent."""
BlobRef = NewType("BlobRef", str)
"""`sha256:` and the hex digest of the bytes it names."""
WorkflowHash = NewType("WorkflowHash", str)
"""The `BlobRef` of a compiled workflow."""

RANDOM_BYTES = 8
NODE_BYTES = 8
ATTEMPT_BYTES = 5
GAP_BYTES = 5
FAILURE_BYTES = 4


def session_id(random: bytes) -> SessionId:
    return SessionId(f"ses_{random[:RANDOM_BYTES].hex()}")


def child_session_id(parent: str, call: str) -> SessionId:
    """Return the session that a tool call in another one spawns: made twice, it is the same."""
    return session_id(_derive("child session", parent, call))


def triggered_session_id(identity: tuple[str, ...]) -> SessionId:
    """Return the session of the work that an occasion starts: told twice, it is the same."""
    return session_id(_derive("triggered session", *identity))


def run_id(random: bytes) -> RunId:
    return RunId(f"run_{random[:RANDOM_BYTES].hex()}")


def node_id(raw: bytes) -> NodeId:
    return NodeId(f"node_{raw[:NODE_BYTES].hex()}")


def attempt_id(raw: bytes) -> AttemptId:
    return AttemptId(f"try_{raw[:ATTEMPT_BYTES].hex()}")


def is_node_id(text: str) -> bool:
    """Whether a text from outside could be the id of a node."""
    kind, _, digits = text.partition("_")
    is_whole = len(digits) == 2 * NODE_BYTES
    return kind == "node" and is_whole and all(digit in "0123456789abcdef" for digit in digits)


def raw_bytes(name: NodeId | AttemptId) -> bytes:
    """Return the bytes of a node or attempt id, as a token carries them."""
    return bytes.fromhex(name.partition("_")[2])


def child_node(parent: NodeId, attempt: AttemptId) -> NodeId:
    """Return the node that `attempt` at `parent` makes, if it makes one.

    It is derived, so that two processes acting on one attempt name the same child.
    """
    return node_id(_derive("node", parent, attempt))


def checkpoint_node(parent: NodeId, attempt: AttemptId, arguments: BlobRef) -> NodeId:
    """Return the checkpoint that this call sets at `parent`."""
    return node_id(_derive("checkpoint", parent, attempt, arguments))


def first_attempt(node: NodeId) -> AttemptId:
    """Return the attempt in the token that is given out with a new node."""
    return attempt_id(_derive("first", node))


def rewound_attempt(attempt: AttemptId, arguments: BlobRef) -> AttemptId:
    """Return the attempt that stands for using a spent token again with other arguments."""
    return attempt_id(_derive("rewound", attempt, arguments))


def next_attempt(attempt: AttemptId) -> AttemptId:
    """Return the attempt to give out for a state whose token is spent: the same for everybody."""
    return attempt_id(_derive("next", attempt))


def gap_id(*parts: str) -> GapId:
    """Return the id of a gap, derived from what it is about: recorded twice, it is the same."""
    return GapId(f"gap_{_derive('gap', *parts)[:GAP_BYTES].hex()}")


def approval_id(node: NodeId) -> ApprovalId:
    """Return the approval that the run waits for at `node`."""
    return ApprovalId(f"apr_{_derive('approval', node)[:GAP_BYTES].hex()}")


def session_approval_id(session: str, *parts: str) -> ApprovalId:
    """Return the approval that a session waits for, derived from what it is about."""
    return ApprovalId(f"apr_{_derive('session approval', session, *parts)[:GAP_BYTES].hex()}")


def delegation_id(session: str, seed: str) -> DelegationId:
    """Return the delegation that is the first to be made with this seed in the session."""
    return DelegationId(f"dlg_{_derive('delegation', session, seed)[:GAP_BYTES].hex()}")


def is_made_by_call(delegation: DelegationId) -> bool:
    """Whether a delegation was made by a call, and is not named after a host's subagent."""
    return delegation.startswith("dlg_")


def decision_id(session: str, seed: str) -> str:
    return f"dec_{_derive('decision', session, seed)[:GAP_BYTES].hex()}"


def job_id(name: str, seed: str) -> str:
    """Return the job of this name that something recorded, named by `seed`, starts."""
    return f"job_{_derive('job', name, seed)[:GAP_BYTES].hex()}"


def review_id(session: str, seed: str) -> str:
    return f"rev_{_derive('review', session, seed)[:GAP_BYTES].hex()}"


def failure_id(random: bytes) -> str:
    """Return the name of one failure, which its answer and its line in the log share."""
    return f"err_{random[:FAILURE_BYTES].hex()}"


def _derive(purpose: str, *parts: str) -> bytes:
    return hashlib.sha256("\0".join(("interlock", purpose, *parts)).encode()).digest()
