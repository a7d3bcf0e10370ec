"""The promises of Interlock, by id: one sentence each, and where it comes from.

A test that proves one carries `@pytest.mark.invariant(id)`. For each there is a fault in
`tests/faults/`, a few lines that break the code; `make prove` puts each in and requires that one of
those tests fails.
"""

from typing import NamedTuple


class Invariant(NamedTuple):
    id: str
    sentence: str
    source: str


INVARIANTS = (
    Invariant(
        "canonical-form",
        "What is hashed, chained or compared is encoded as RFC 8785 says.",
        "RFC 8785",
    ),
    Invariant(
        "fast-encoder-agrees",
        "The fast encoder for our own structs gives the bytes of the reference implementation.",
        "ADR 0003",
    ),
    Invariant(
        "token-single-character",
        "A token with one wrong character is never read as another token, and the place is named.",
        "BIP 350",
    ),
    Invariant(
        "token-faults-told-apart",
        "Mangled, of another store, of a revoked key, of an unknown version and forged tokens are"
        " five different errors.",
        "ADR 0003",
    ),
    Invariant(
        "chain-shows-damage",
        "Any changed, missing or foreign event of a stream is found and located.",
        "ADR 0001",
    ),
    Invariant(
        "append-refuses-stale",
        "An append is written only if the stream still ends where it was read.",
        "ADR 0001",
    ),
    Invariant(
        "append-refuses-half-known",
        "A plan of which only some events exist is refused, and nothing is written.",
        "ADR 0001",
    ),
    Invariant(
        "append-is-whole",
        "A plan is written whole, refused whole or known whole.",
        "ADR 0001",
    ),
    Invariant(
        "newer-store-refused",
        "A store that a newer Interlock wrote is refused and left as it is.",
        "ADR 0001",
    ),
    Invariant(
        "keyring-is-private",
        "The keyring can be read by its owner only.",
        "ADR 0003",
    ),
    Invariant(
        "replay-is-identical",
        "The same call again, at any time and from any process, gets the same bytes.",
        "ARCHITECTURE.md",
    ),
    Invariant(
        "rewind-branches",
        "A spent token with other output makes a branch, and no output is ever lost.",
        "ARCHITECTURE.md",
    ),
    Invariant(
        "one-outcome-per-attempt",
        "An attempt has one outcome, however many processes try it at the same moment.",
        "ARCHITECTURE.md",
    ),
    Invariant(
        "rehydrate-writes-nothing",
        "Showing a step again changes nothing in the store.",
        "ARCHITECTURE.md",
    ),
    Invariant(
        "prompt-as-given",
        "A step is shown again in the words in which it was given first.",
        "ARCHITECTURE.md",
    ),
    Invariant(
        "acknowledged-survives",
        "What was acknowledged is there after kill -9, once and in order, and the work goes on.",
        "ARCHITECTURE.md",
    ),
    Invariant(
        "stdout-is-protocol",
        "The server's stdout carries answers of the protocol and nothing else.",
        "MCP, stdio transport",
    ),
    Invariant(
        "errors-lead-on",
        "A refused call is answered with a call that is accepted.",
        "ARCHITECTURE.md",
    ),
    Invariant(
        "append-survives-faults",
        "Whichever write or sync fails, a plan is there whole or not at all, and the next one goes"
        " through.",
        "ADR 0001",
    ),
    Invariant(
        "power-loss-keeps-acknowledged",
        "What was acknowledged is there after a loss of power, whatever became of what was not yet"
        " synced.",
        "ADR 0001",
    ),
    Invariant(
        "bundle-is-whole",
        "A bundle of which a part was flipped, dropped or added is refused, and the part is named.",
        "ADR 0004",
    ),
    Invariant(
        "start-is-idempotent",
        "The same start again is the same run: within a minute, or for ever if it names itself.",
        "ARCHITECTURE.md",
    ),
    Invariant(
        "newest-notes-survive",
        "However little room a recap has, the newest notes are in it.",
        "ADR 0004",
    ),
    Invariant(
        "checkpoint-moves-nothing",
        "A checkpoint leaves the pending step pending and never makes an advance a branch.",
        "ADR 0004",
    ),
    Invariant(
        "outcome-table",
        "Autonomy, risk policy and reason decide whether an output stops the run or leaves a gap.",
        "ADR 0004",
    ),
    Invariant(
        "head-is-a-fold",
        "The head of a session is what its events add up to, kept along the way or from scratch.",
        "ADR 0001",
    ),
    Invariant(
        "every-event-has-an-emitter",
        "Every kind of event is brought about through a surface and is said in words.",
        "ADR 0004",
    ),
    Invariant(
        "approval-holds",
        "What comes after an approval is neither shown nor taken before it is answered.",
        "ADR 0005",
    ),
    Invariant(
        "approval-answered-once",
        "Of several answers to an approval, at the same moment or later, one counts.",
        "ADR 0005",
    ),
    Invariant(
        "problems-told-at-once",
        "Everything that is wrong with a workflow file is told at once, each with its place.",
        "ADR 0005",
    ),
    Invariant(
        "contract-is-repairable",
        "From what a blocker says about a contract, an output that is accepted can be made.",
        "ADR 0005",
    ),
    Invariant(
        "prompts-are-golden",
        "The words of a prompt change only when somebody has read the new ones.",
        "ADR 0005",
    ),
    Invariant(
        "run-follows-the-model",
        "A run goes where its workflow says, step for step, however often it is put away.",
        "ADR 0005",
    ),
    Invariant(
        "one-hash",
        "A workflow has one hash, whatever the machine, the place and the order of its keys.",
        "ADR 0005",
    ),
    Invariant(
        "gate-fails-closed",
        "Where it is not known what a session may do, nothing is edited and no command is run.",
        "ADR 0006",
    ),
    Invariant(
        "agents-keep-their-rules",
        "No agent changes what binds it: config, hooks, the gate, what is the user's to say.",
        "ADR 0006",
    ),
    Invariant(
        "persons-loosen",
        "What loosens the gate is done by a person at a terminal, in an attended client or in the"
        " console, or with the user's secret below no agent, and by nobody else.",
        "ADR 0006",
    ),
    Invariant(
        "secret-is-not-enough",
        "The server refuses what loosens the gate to processes that run below an agent, and to"
        " unknown ones without a cookie of a person's, whatever secret they send.",
        "ADR 0007",
    ),
    Invariant(
        "secrets-stay-unread",
        "No agent reads the secrets in Interlock's directory by naming them, whatever the mode.",
        "ADR 0006",
    ),
    Invariant(
        "project-only-tightens",
        "A project's own config can only tighten the gate until the user trusts it.",
        "ADR 0006",
    ),
    Invariant(
        "reading-changes-nothing",
        "A shell command that is said to read changes no file when it is run.",
        "ADR 0006",
    ),
    Invariant(
        "confined-changes-nothing",
        "A confined command changes no file, no metadata, no other process and no daemon, and does"
        " not read the data home.",
        "ADR 0011",
    ),
    Invariant(
        "guards-are-watched",
        "When somebody else changes a file that makes the gate work, sessions go back to reading.",
        "ADR 0011",
    ),
    Invariant(
        "fast-allows-less",
        "What the fast hook allows, the gate allows; everything else it leaves to the gate.",
        "ADR 0006",
    ),
    Invariant(
        "server-own-name",
        "The server answers nothing that was asked under another name or by another site.",
        "ADR 0007",
    ),
    Invariant(
        "text-stays-text",
        "What agents, files and bundles say is shown as text and does nothing.",
        "ADR 0007",
    ),
    Invariant(
        "together-or-alone",
        "Of what is written with one sync, what fails leaves the others whole.",
        "ADR 0007",
    ),
    Invariant(
        "notes-byte-for-byte",
        "A note that is read and written back is the same file.",
        "ADR 0008",
    ),
    Invariant(
        "notes-index-follows-files",
        "An index that was kept up to date equals one made from scratch.",
        "ADR 0008",
    ),
    Invariant(
        "notes-scan-takes-nothing",
        "What could not be looked at stays in the index.",
        "ADR 0008",
    ),
    Invariant(
        "notes-no-lost-update",
        "Nobody writes over text that they have not seen.",
        "ADR 0008",
    ),
    Invariant(
        "notes-stay-apart",
        "No path, link or address leads out of a notes folder.",
        "ADR 0008",
    ),
    Invariant(
        "notes-change-is-noticed",
        "What was written before a question is in its answer.",
        "ADR 0008",
    ),
    Invariant(
        "told-within-budget",
        "What a session is told stays in its budget, and what is left out is counted.",
        "ADR 0008",
    ),
    Invariant(
        "told-once",
        "A conversation is not told again what it knows.",
        "ADR 0008",
    ),
    Invariant(
        "database-crash-keeps-acknowledged",
        "What was acknowledged is there after PostgreSQL was killed, and the work goes on.",
        "ADR 0009",
    ),
    Invariant(
        "positions-miss-nothing",
        "Whoever looks from position to position sees all that was written, and nothing twice.",
        "ADR 0009",
    ),
    Invariant(
        "keyring-is-shared",
        "A key that one process makes, retires or revokes is so for every other at its next use.",
        "ADR 0009",
    ),
    Invariant(
        "lost-store-comes-back",
        "While the store is away every call says so; when it is back they work, without a restart.",
        "ADR 0009",
    ),
    Invariant(
        "job-goes-on",
        "A job that is killed at any point leaves what an undisturbed one leaves.",
        "ADR 0016",
    ),
    Invariant(
        "executor-is-one",
        "Of the processes that share a store in a file, one runs jobs, and the next goes on.",
        "ADR 0016",
    ),
    Invariant(
        "grant-used-once",
        "A grant lets one call pass, and no other one.",
        "ADR 0017",
    ),
    Invariant(
        "one-holder",
        "Of those who want the same item or overlapping paths, one gets it and the others are told"
        " who that is.",
        "ADR 0018",
    ),
    Invariant(
        "taken-over-is-fenced",
        "A take-over happens wholly or not at all, and nothing is written after it by who was taken"
        " over.",
        "ADR 0018",
    ),
    Invariant(
        "news-told-once",
        "Every message to an agent is delivered to it, or to the agent that takes over, once, by"
        " whichever process.",
        "ADR 0018",
    ),
    Invariant(
        "unattended-goes-on",
        "Whoever is killed at whichever point, unattended work ends as if nobody had been, and no"
        " recorded answer of a model is asked for again.",
        "ADR 0020",
    ),
    Invariant(
        "delivered-once",
        "Whatever fails or is killed on the way, a result is pushed, requested and commented on"
        " once, and never with what nobody named.",
        "ADR 0020",
    ),
    Invariant(
        "driver-is-fenced",
        "A driver that another one has taken over from can write nothing.",
        "ADR 0020",
    ),
)
