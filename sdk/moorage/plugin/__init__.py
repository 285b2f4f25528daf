"""The plugin API: the classes that authors subclass, and the values that their methods exchange.

Write the per-node form (`filter_node`, `score_node`) for plain Python, or the batch form (`filter`,
`score`) for numpy over columns. One class may be of several kinds. One instance serves one profile;
cycles use it one after another, so what `prepare` keeps on the instance is there for the same
cycle's `filter` or `score`. Binds run side by side.
"""
