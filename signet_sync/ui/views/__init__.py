"""What the page shows, one module for each kind of view: plain functions from what is asked to what is shown."""
