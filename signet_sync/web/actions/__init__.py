"""Lists what the page can do: each action plans from a request, and calls the operation that its command calls."""
