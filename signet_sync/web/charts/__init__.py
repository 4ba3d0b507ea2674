"""Draws sessions along time: axis, calendar, lanes, marks."""
