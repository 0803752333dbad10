"""etcd's raft beside its spec: a harness in Go, a tracing, and what both are to notice."""
