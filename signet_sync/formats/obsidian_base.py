"""States the file `Memory.base`: views of sessions and entities for Obsidian's Bases.

It names properties only, so that nothing in it has to follow a removal.
"""

from __future__ import annotations

BASE = "Memory.base"

# Summaries and entity files have these properties.
TEXT = """\
# Made by signet-sync (signet-sync obsidian). Change it as you like: it is not written again.
formulas:
  session: if(memory_sentence, link(file.path, memory_sentence), link(file.path))
  name: if(aliases, link(file.path, aliases[0]), link(file.path))
properties:
  formula.session:
    displayName: Session
  formula.name:
    displayName: Name
  note.project:
    displayName: Project
  note.harness:
    displayName: Harness
  note.captured_at:
    displayName: Captured
  note.updated_at:
    displayName: Updated
views:
  - type: table
    name: Sessions
    filters:
      and:
        - file.inFolder("memory")
        - kind == "summary"
    order:
      - formula.session
      - note.project
      - note.harness
      - note.captured_at
    sort:
      - property: note.captured_at
        direction: DESC
    limit: 200
  - type: table
    name: Entities
    filters:
      and:
        - file.path.contains("entities/")
        - kind == "user" || kind == "part" || kind == "relationship"
        - status.isTruthy()
    groupBy:
      property: note.kind
      direction: ASC
    order:
      - formula.name
      - note.status
      - note.type
      - note.updated_at
"""
