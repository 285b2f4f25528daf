"""The cluster as the API server shows it: one watch for each kind of object, and the state.

reflector  follows the objects of one kind, by lists and watches; `wire` reads them, `endings` says
           why a watch ended, and when the next one begins
cluster    the reflectors of nodes and pods, and how old what they show is
kinds      the reflectors of additional kinds, for as long as plugins read them
pods       how pods are read
state      nodes, pods, places, generations; `rows`, `objects`, `placements` and
           `changes` are parts of it
waiters    waits for changes
"""
