// signet-sync: brings OpenCode's sessions into the memory vault, and the vault's memory into its sessions.
// Written by `signet-sync hooks install opencode`, which replaces this file; `signet-sync hooks uninstall opencode`
// takes it away. SIGNET_NO_HOOKS=1 or SIGNET_BYPASS=1 in OpenCode's environment switches it off.
import { homedir } from "node:os"
import { join } from "node:path"

const MOST_TEXTS = 20 // of one session
const STORE = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode", "opencode.db")
const NAMES = { "session.created": "SessionStart", "session.idle": "Stop", "session.compacted": "PostCompact" }

// Without a person's window nobody is asked to write for one.
const ATTENDED = !["run", "serve", "acp", "github"].some((word) => process.argv.includes(word))

// [ask.js]

export const SignetSync = async ({ directory }) => {
  const people = new Set() // sessions that somebody talks in
  const agents = new Set() // sessions of sub-agents: part of another one
  const memory = new Map() // session → promises of what it got at its start and at prompts

  const tell = (event, session, prompt, source, call) =>
    ask(
      ["hook", "opencode"],
      JSON.stringify({
        hook_event_name: event,
        session_id: session,
        cwd: directory,
        transcript_path: STORE,
        prompt,
        source,
        attended: ATTENDED,
        ...call,
      }),
      call ? TOOL_PATIENCE : prompt === undefined ? PATIENCE : PROMPT_PATIENCE,
    )

  // The system prompt is made for each request, so all of it is given each time.
  const begin = (session) => {
    if (!memory.has(session)) memory.set(session, [tell("SessionStart", session, undefined, "startup")])
    return memory.get(session)
  }

  return {
    event: async ({ event }) => {
      const name = NAMES[event.type]
      const { info, sessionID } = event.properties ?? {}
      const session = sessionID ?? info?.id
      if (!name || !session || off()) return
      if (info?.parentID) agents.add(session)
      if (agents.has(session)) return
      people.add(session)
      void (name === "SessionStart" ? begin(session) : tell(name, session))
    },

    // Somebody's words, before they stand in the store.
    "chat.message": async ({ sessionID }, { parts }) => {
      if (!sessionID || agents.has(sessionID) || off()) return
      const said = (parts ?? []).filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
      if (!said.length) return
      const texts = begin(sessionID)
      await texts[0] // what the session has already is not given again
      texts.push(tell("UserPromptSubmit", sessionID, said.map((part) => part.text).join("\n\n")))
      if (texts.length > MOST_TEXTS) texts.splice(1, 1)
    },

    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      if (!sessionID || agents.has(sessionID) || off()) return
      for (const text of await Promise.all(begin(sessionID))) if (text.trim()) output.system.push(text.trim())
    },

    // Before a call nothing can be said; the model sees what is said here with what the tool gave back.
    "tool.execute.after": async ({ tool, sessionID, args }, result) => {
      if (!sessionID || agents.has(sessionID) || off()) return
      const call = called(tool, args, result.metadata?.exit ? result.output : "")
      const text = call ? await tell("PostToolUse", sessionID, undefined, undefined, call) : ""
      if (text.trim()) result.output += `\n\n${text.trim()}`
    },

    // OpenCode knows no end of a session; that of the process is the nearest thing to it.
    dispose: async () => {
      if (!off()) await Promise.all([...people].map((session) => tell("SessionEnd", session)))
    },
  }
}
