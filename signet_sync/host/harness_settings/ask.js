import { spawn } from "node:child_process"

const PROGRAM = ["signet-sync"]
const PATIENCE = 5000 // milliseconds
const PROMPT_PATIENCE = 2000
const TOOL_PATIENCE = 500

const off = () =>
  ["SIGNET_NO_HOOKS", "SIGNET_BYPASS", "SIGNET_SYNC_CHILD"].some((name) => !["", "0"].includes(process.env[name] ?? ""))

// What a tool that ran was called with, as a hook tells it; nothing for any but a shell and the editors.
const called = (tool, given, failure) => {
  const file = given?.path ?? given?.filePath
  if (tool === "bash") return { tool_input: { command: given?.command }, error: failure }
  if (tool === "edit" || tool === "write") return { tool_input: { file_path: file } }
  return tool === "apply_patch" ? { tool_input: { command: given?.patchText } } : undefined
}

// What the program prints; nothing where it fails or takes too long. No session ever notices.
const ask = (words, input, patience = PATIENCE) =>
  new Promise((answer) => {
    try {
      const child = spawn(PROGRAM[0], [...PROGRAM.slice(1), ...words], {
        stdio: ["pipe", "pipe", "ignore"],
        detached: true, // Ctrl-C in the terminal is not meant for it
      })
      const clock = setTimeout(() => child.kill(), patience)
      const done = (text) => {
        clearTimeout(clock)
        answer(text)
      }
      const parts = []
      child.stdout.on("data", (part) => parts.push(part))
      child.stdin.on("error", () => {})
      child.on("error", () => done(""))
      child.on("close", (code) => done(code === 0 ? Buffer.concat(parts).toString("utf8") : ""))
      child.stdin.end(input)
    } catch {
      answer("")
    }
  })
