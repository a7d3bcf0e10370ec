// Loads a plugin as OpenCode does and calls its hooks one after the other, as stdin says.
import { pathToFileURL } from "node:url"

const text = await new Promise((resolve) => {
  let all = ""
  process.stdin.on("data", (data) => (all += data)).on("end", () => resolve(all))
})
const { plugin, directory, sessions, calls } = JSON.parse(text)
const client = {
  session: {
    get: async ({ path: { id } }) => {
      if (!sessions[id]) throw new Error(`no session ${id}`)
      return { data: sessions[id] }
    },
  },
}
const exported = await import(pathToFileURL(plugin))
const wrong = Object.values(exported).filter((each) => typeof each !== "function")
if (wrong.length) throw new Error("Plugin export is not a function")
const [load] = Object.values(exported)
const hooks = await load({ client, directory, worktree: directory })
const results = []
for (const { hook, input, output } of calls) {
  let thrown = null
  try {
    await hooks[hook]?.(input, output)
  } catch (error) {
    thrown = error.message
  }
  results.push({ thrown, output: output ?? null })
}
await hooks.dispose?.()
console.log(JSON.stringify({ results }))
