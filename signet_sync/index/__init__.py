"""The door to our database: schema, derived rows, full text, seals and other native rows."""
