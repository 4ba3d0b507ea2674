// signet-sync: brings pi's sessions into the memory vault, and the vault's memory into its sessions.
// Written by `signet-sync hooks install pi`, which replaces this file; `signet-sync hooks uninstall pi` takes it away.
// SIGNET_NO_HOOKS=1 or SIGNET_BYPASS=1 in pi's environment switches it off.

const OURS = "signet-memory"

// [ask.js]

export default function (pi) {
  let due = Promise.resolve("") // what the session gets with its next prompt

  const tell = (event, ctx, more = {}) =>
    off()
      ? Promise.resolve("")
      : ask(
          ["hook", "pi"],
          JSON.stringify({
            hook_event_name: event,
            session_id: ctx.sessionManager.getSessionId(),
            cwd: ctx.cwd,
            transcript_path: ctx.sessionManager.getSessionFile(),
            attended: ctx.mode === "tui",
            ...more,
          }),
          more.tool_input ? TOOL_PATIENCE : more.prompt === undefined ? PATIENCE : PROMPT_PATIENCE,
        )

  // What a session got stays in it until a compaction, also when another process continues it.
  pi.on("session_start", async (_event, ctx) => {
    const kept = ctx.sessionManager.getBranch().filter((one) => one.customType === OURS || one.type === "compaction")
    const last = kept.at(-1)
    due = tell("SessionStart", ctx, { source: !last ? "startup" : last.type === "compaction" ? "compact" : "resume" })
  })

  pi.on("before_agent_start", async (event, ctx) => {
    const start = await due
    due = Promise.resolve("")
    const said = event.prompt ? await tell("UserPromptSubmit", ctx, { prompt: event.prompt }) : ""
    const content = [start, said].map((text) => text.trim()).filter(Boolean).join("\n")
    if (content) return { message: { customType: OURS, content, display: false } }
  })

  // Before a call nothing can be said; the model sees what is said here with what the tool gave back.
  pi.on("tool_result", async (event, ctx) => {
    const printed = event.content.map((one) => one.text ?? "").join("\n")
    const call = called(event.toolName, event.input, event.isError ? printed : "")
    const text = call ? (await tell("PostToolUse", ctx, call)).trim() : ""
    const { content, structuredContent } = event
    if (text) return { content: [...content, { type: "text", text }], structuredContent }
  })

  pi.on("agent_end", async (_event, ctx) => {
    await tell("Stop", ctx)
  })

  pi.on("session_compact", async (event, ctx) => {
    await tell("PostCompact", ctx, { trigger: event.reason })
    due = tell("SessionStart", ctx, { source: "compact" })
  })

  pi.on("session_shutdown", async (event, ctx) => {
    await tell("SessionEnd", ctx, { reason: event.reason })
  })
}
