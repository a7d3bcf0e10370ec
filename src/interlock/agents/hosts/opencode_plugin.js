// Written by `interlock install opencode`. It starts Interlock's hook, and obeys its answer.
//
// A tool call is blocked by throwing in `tool.execute.before`, and only there: a throw anywhere else
// would end the user's session. Every export must be a function, or OpenCode drops the plugin.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"

const LAUNCHER = "@LAUNCHER@" // empty: that of the project
const MILLISECONDS = 10_000
const OBSERVED = ["bash", "todowrite", "task"] // calls that are recorded afterwards
const HELPERS = /^You are a (title generator|context summarization)/

function above(directory, path) {
  for (let at = directory; ; at = dirname(at)) {
    if (existsSync(join(at, path))) return join(at, path)
    if (at === dirname(at)) return ""
  }
}

function run(launcher, event, payload) {
  return new Promise((resolve) => {
    let out = "", err = "", child
    const timer = setTimeout(() => { child?.kill("SIGKILL"); resolve({ failed: "it took too long" }) }, MILLISECONDS)
    const end = (answer) => { clearTimeout(timer); resolve(answer) }
    try {
      child = spawn("/bin/sh", [launcher, "hook", "opencode", event], { cwd: payload.cwd })
    } catch (error) {
      return end({ failed: String(error) })
    }
    child.on("error", (error) => end({ failed: String(error) }))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => (out += data))
    child.stderr.on("data", (data) => (err += data))
    child.on("close", (code) => {
      if (code !== 0) return end({ failed: err.trim() || `exit code ${code}` })
      try { end(out.trim() ? JSON.parse(out) : {}) } catch { end({ failed: `a bad answer: ${out.slice(0, 200)}` }) }
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

export const Interlock = async ({ client, directory }) => {
  const sessions = new Map() // by id: what is known of a session
  const pending = new Set() // answers that nobody waits for
  const warnings = new Map() // by call: what is said to one that is let through

  const find = async (id) => {
    if (!sessions.has(id)) sessions.set(id, { id })
    const session = sessions.get(id)
    session.known ??= client.session.get({ path: { id } }).then(({ data }) => {
      session.parent = data?.parentID
      session.agent ??= data?.agent
    }).catch(() => { session.known = undefined }) // it is asked again
    await session.known
    return session
  }
  // A subagent has a session of its own; its gate is that of the conversation which it works for.
  const rootOf = async (session) => (session.parent ? rootOf(await find(session.parent)) : session)
  const ask = async (event, id, more = {}) => {
    const launcher = LAUNCHER || above(directory, ".interlock/launch")
    if (!launcher || !existsSync(launcher)) {
      const isGuarded = LAUNCHER && above(directory, ".interlock/config.toml")
      return isGuarded ? { failed: "Interlock is not installed any more (`interlock install opencode`)" } : {}
    }
    const session = await find(id)
    const root = await rootOf(session)
    return run(launcher, event, {
      session_id: root.id,
      cwd: directory,
      hook_event_name: event,
      ...(root.id !== id && { agent_id: id, agent_type: session.agent ?? "" }),
      ...((root.agent === "plan" || session.agent === "plan") && { permission_mode: "plan" }),
      ...more,
    })
  }
  // No event tells that a session is resumed, so each begins when it is first heard of.
  const start = async (id) => {
    const session = await find(id)
    const event = session.parent ? "subagent-start" : "session-start"
    session.started ??= ask(event, id, { source: session.source ?? "startup" }).then((answer) => {
      if (answer.failed) session.started = undefined // it is tried again
      session.context = answer.context
    })
    await session.started
    return session
  }
  const later = (promise) => { pending.add(promise); promise.finally(() => pending.delete(promise)) }
  const quietly = (hook) => async (...words) => { try { await hook(...words) } catch {} }

  return {
    "tool.execute.before": async (input, output) => {
      await start(input.sessionID).catch(() => {})
      const call = { tool_name: input.tool, tool_input: output.args, tool_use_id: input.callID }
      const answer = await ask("pre-tool", input.sessionID, call)
      if (answer.failed) throw new Error(`The gate cannot say whether this may happen, so it may not: ${answer.failed}`)
      if (answer.decision === "deny") throw new Error(answer.reason)
      if (answer.context) warnings.set(input.callID, answer.context) // told with the result
    },
    "tool.execute.after": quietly(async (input, output) => {
      const texts = [warnings.get(input.callID)]
      warnings.delete(input.callID)
      if (OBSERVED.includes(input.tool)) {
        const call = { tool_name: input.tool, tool_input: input.args, tool_use_id: input.callID }
        const { exit, sessionId: subagent } = output?.metadata ?? {}
        const response = input.tool === "task" ? { subagent, output: output?.output } : { exit }
        const answer = await ask("post-tool", input.sessionID, { ...call, tool_response: response })
        texts.push(answer.context)
      }
      const told = texts.filter(Boolean).join("\n")
      if (told && typeof output?.output === "string") output.output += `\n\n<interlock>\n${told}\n</interlock>`
    }),
    "command.execute.before": quietly(async (input) => {
      if (["mode", "autonomy", "approve", "deny"].includes(input.command)) (await find(input.sessionID)).typed = `/${input.command} ${input.arguments}`
    }),
    "chat.message": quietly(async (input, output) => {
      const session = await start(input.sessionID)
      session.agent = output.message.agent
      const texts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      // Headless, a prompt with a space comes in quotes.
      const prompt = session.typed ?? texts.map((part) => part.text).join("\n").replace(/^"(.*)"$/s, "$1")
      session.typed = undefined
      if (session.parent || !session.known) return // what another agent wrote, perhaps
      const { context: text } = await ask("prompt-submit", input.sessionID, { prompt })
      const id = `prt_interlock${Date.now().toString(36)}${Math.random().toString(36).slice(2, 10)}`
      const place = { id, sessionID: input.sessionID, messageID: output.message.id }
      if (text) output.parts.push({ ...place, type: "text", synthetic: true, text })
    }),
    "experimental.chat.system.transform": quietly(async (input, output) => {
      if (!input.sessionID || HELPERS.test(output.system[0] ?? "")) return
      const session = await start(input.sessionID)
      if (session.context) output.system.push(session.context)
    }),
    "experimental.session.compacting": quietly(async (input) => { await ask("pre-compact", input.sessionID) }),
    event: quietly(async ({ event: { type, properties } }) => {
      const session = sessions.get(properties?.sessionID)
      if (type === "session.compacted" && session) Object.assign(session, { started: undefined, source: "compact" })
      if (type === "session.deleted" && session && !session.parent) later(ask("session-end", properties.sessionID, { reason: "deleted" }))
    }),
    dispose: async () => { await Promise.allSettled([...pending]) },
  }
}
