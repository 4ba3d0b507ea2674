"""No two modules import each other, not even through others."""

from graphlib import TopologicalSorter

import grimp


def test_no_modules_import_each_other():
    """Imports inside functions count, those for the type checker only do not; a cycle raises `CycleError`."""
    graph = grimp.build_graph("signet_sync", exclude_type_checking_imports=True, cache_dir=None)
    TopologicalSorter({one: graph.find_modules_directly_imported_by(one) for one in graph.modules}).prepare()
