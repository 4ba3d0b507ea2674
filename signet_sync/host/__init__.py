"""The machine around us: each module is a door to one thing of it, obeys and decides nothing."""
