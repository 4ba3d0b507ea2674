"""What a session says while it runs: handed over (`operations.append`) or read from its harness's transcript.

The door is `operations` for what changes live turns, `store` for questions. Turns that were handed over are files in
the state folder, from which rows follow; an ending takes them into its artifacts, and a removal deletes both.
"""
