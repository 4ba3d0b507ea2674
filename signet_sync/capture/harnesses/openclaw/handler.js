// signet-sync: brings OpenClaw's sessions into the memory vault, and the vault's memory into its sessions.
// Written by `signet-sync hooks install openclaw`, which replaces this file; `signet-sync hooks uninstall openclaw`
// takes it away. SIGNET_NO_HOOKS=1 or SIGNET_BYPASS=1 in OpenClaw's environment switches it off.
import { join } from "node:path"

const NAMES = {
  "agent:bootstrap": "SessionStart",
  "session:compact:after": "PostCompact",
  "command:new": "SessionEnd",
  "command:reset": "SessionEnd",
  "session:auto-reset": "SessionEnd",
}

// [ask.js]

// Where the session takes place: what others read too gets no memory.
const place = (event, entry) => ({
  session_key: event.context?.sessionKey ?? event.sessionKey,
  chat_type: entry.chatType ?? entry.origin?.chatType,
  group_id: entry.groupId ?? entry.groupChannel,
})

const memory = new Map() // session → what was asked at its start, with its place, and the promise of an answer

export default async function handler(event) {
  const context = event.context ?? {}
  const name = NAMES[`${event.type}:${event.action}`]
  const entry = context.previousSessionEntry ?? context.sessionEntry ?? {}
  const session = entry.sessionId ?? context.sessionId
  if (!name || !session || off()) return
  const document = { hook_event_name: name, session_id: session, cwd: context.workspaceDir, ...place(event, entry) }
  // Newer versions keep sessions in a database and name no file.
  if (entry.sessionFile?.endsWith?.(".jsonl")) document.transcript_path = entry.sessionFile
  const tell = () => ask(["hook", "openclaw"], JSON.stringify(document))
  if (name !== "SessionStart") {
    if (name === "SessionEnd") memory.delete(session)
    void tell()
    return
  }
  const asked = JSON.stringify(document)
  if (memory.get(session)?.asked !== asked) memory.set(session, { asked, answer: tell() })
  const content = (await memory.get(session).answer).trim()
  if (!content || !Array.isArray(context.bootstrapFiles)) return
  const file = "SIGNET_MEMORY.md" // stands on no disk; OpenClaw wants a name and a path for what it shows
  context.bootstrapFiles.push({ name: file, path: join(context.workspaceDir ?? "", file), content, missing: false })
}
