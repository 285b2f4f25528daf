"""kube-scheduler's own rules, as plugins: each of them once, whoever runs it.

The filter and the scorer service offer them, the stand-in for kube-scheduler runs them as its
in-tree plugins, and trial placements of groups ask the filters.
"""
