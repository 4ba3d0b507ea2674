"""The contracts: what an artifact is, how it is named, hashed, read and written. Pure; imported by every desk."""
