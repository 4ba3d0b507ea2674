"""Desks of the temporal graph: nodes cut from artifacts, threads and their heads, condensations, scores."""
