// Three nodes of hashicorp/raft in one process, each with its own log in JSON; the leader is cut off twice.  In a folder with
// this file alone: go mod init record; go get github.com/hashicorp/raft@v1.8.0; go mod tidy; go run record.go
package main

import (
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func main() {
	var names = []string{"n1", "n2", "n3"}
	var servers []raft.Server
	var nodes []*raft.Raft
	var transports []*raft.InmemTransport
	for _, name := range names {
		address, transport := raft.NewInmemTransport(raft.ServerAddress(name))
		servers = append(servers, raft.Server{ID: raft.ServerID(name), Address: address})
		transports = append(transports, transport)
	}
	connect := func() {
		for _, a := range transports {
			for _, b := range transports {
				if a != b {
					a.Connect(b.LocalAddr(), b)
				}
			}
		}
	}
	connect()
	for i, name := range names {
		file, err := os.Create(name + ".ndjson")
		if err != nil {
			panic(err)
		}
		config := raft.DefaultConfig()
		config.LocalID = raft.ServerID(name)
		config.Logger = hclog.New(&hclog.LoggerOptions{Name: "raft", Level: hclog.Trace, JSONFormat: true, Output: file})
		config.HeartbeatTimeout, config.ElectionTimeout = 100*time.Millisecond, 100*time.Millisecond
		config.LeaderLeaseTimeout, config.CommitTimeout = 50*time.Millisecond, 10*time.Millisecond
		store := raft.NewInmemStore()
		raft.BootstrapCluster(config, store, store, raft.NewInmemSnapshotStore(), transports[i], raft.Configuration{Servers: servers})
		node, err := raft.NewRaft(config, &raft.MockFSM{}, store, store, raft.NewInmemSnapshotStore(), transports[i])
		if err != nil {
			panic(err)
		}
		nodes = append(nodes, node)
	}
	time.Sleep(400 * time.Millisecond)
	for n := 0; n < 2; n++ {
		for i, node := range nodes {
			if node.State() == raft.Leader {
				for j, other := range transports {
					if j != i {
						transports[i].Disconnect(other.LocalAddr())
						other.Disconnect(transports[i].LocalAddr())
					}
				}
				break
			}
		}
		time.Sleep(350 * time.Millisecond)
		connect()
		time.Sleep(400 * time.Millisecond)
	}
	for _, node := range nodes {
		node.Shutdown().Error()
	}
}
