"""Makes vectors of texts, and finds by them what is similar in meaning to a query. Off by default.

Owns the table embeddings. A vector goes with the line or artifact whose text it was made from, in the same statement.
"""

RULES = "embeddings"  # under this name the model that made all vectors is recorded
