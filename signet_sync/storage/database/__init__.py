"""The database: what its tables are (`tables`); connection and statements are still in `index`."""
