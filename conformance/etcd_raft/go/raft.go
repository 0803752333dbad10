package main

// A node of raft.  raft_getters.go and raft_values.go have what differs by release: from v3.7 on raft's messages are pointers with
// getters, before they are values.  The builder (harness.py) writes the import path of older ones.

import (
	"io"
	"log"
	"sort"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// firstTerm is that of a new node; v3.3 takes a node with an empty log for new.
const (
	firstTerm  = 0
	bootstraps = false
)

type disk struct {
	*raft.MemoryStorage
	voters *pb.ConfState
}

// node is a node of raft with its disk.
type node struct {
	*raft.RawNode
	id                  uint64
	disk                disk
	config              Config
	log                 []uint64 // as shown last
	events, sent, boots int      // in the recording
}

// NewNode starts a node with an empty disk.
func NewNode(id uint64, config Config) *node {
	voters := &pb.ConfState{}
	for n := 1; n <= config.First; n++ {
		voters.Voters = append(voters.Voters, uint64(n))
	}
	n := &node{id: id, disk: disk{raft.NewMemoryStorage(), voters}, config: config}
	n.Restart()
	return n
}

// Restart forgets what was not stored.
func (n *node) Restart() {
	hard, _, err := n.disk.InitialState()
	must(err)
	_, _, commit := numbers(hard)
	n.RawNode, err = raft.NewRawNode(&raft.Config{
		ID: n.id, ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks, Storage: n.disk,
		MaxSizePerMsg: uint64(n.config.Bytes), MaxInflightMsgs: 8, Applied: commit,
		CheckQuorum: n.config.CheckQuorum, PreVote: n.config.PreVote,
		Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
	})
	must(err)
}

func (n *node) Propose()                 { _ = n.RawNode.Propose([]byte("12345678")) }
func (n *node) Transfer(to uint64)       { n.TransferLeader(to) }
func (n *node) Receive(m *Message)       { _ = n.Step(m.raw.(raftMessage)) }
func (n *node) SnapshotFailed(of uint64) { n.ReportSnapshot(of, raft.SnapshotFailure) }

// Store writes and applies all that the node has; it returns what is sent, and up to where it has applied, step by step.
func (n *node) Store() (sent []*Message, applied []uint64) {
	for n.HasReady() {
		ready, batch := n.Ready(), len(applied)
		if !raft.IsEmptySnap(ready.Snapshot) {
			must(n.disk.ApplySnapshot(ready.Snapshot))
			restored, at := n.restored(ready.Snapshot)
			n.disk.voters, applied = restored, append(applied, at)
		}
		must(n.disk.Append(ready.Entries))
		if !raft.IsEmptyHardState(ready.HardState) {
			must(n.disk.SetHardState(ready.HardState))
		}
		for _, m := range ready.Messages {
			sent = append(sent, shown(m))
			sent[len(sent)-1].Batch = batch
		}
		for _, e := range ready.CommittedEntries {
			n.apply(e)
		}
		if many := len(ready.CommittedEntries); many > 0 {
			applied = append(applied, index(ready.CommittedEntries[many-1]))
		}
		n.Advance(ready)
	}
	return sent, applied
}

func (n *node) Compact(to uint64) {
	_, err := n.disk.CreateSnapshot(to, n.disk.voters, nil)
	must(err)
	must(n.disk.Compact(to))
}

// Start is the number of compacted entries.
func (n *node) Start() uint64 {
	first, err := n.disk.FirstIndex()
	must(err)
	return first - 1
}

func (n *node) State() State {
	status := n.Status()
	term, vote, commit := numbers(status.HardState)
	last, err := n.disk.LastIndex()
	must(err)
	shown := State{
		Start: n.Start(), Log: &[]uint64{},
		Term: term, Vote: name(vote), Role: status.RaftState.String(), Lead: name(status.Lead),
		Commit: commit, Last: last,
	}
	for at := n.Start() + 1; at <= last; at++ {
		term, err := n.disk.Term(at)
		must(err)
		*shown.Log = append(*shown.Log, term)
	}
	shown.LastTerm, err = n.disk.Term(last)
	must(err)
	if status.RaftState == raft.StateLeader {
		shown.Match = map[string]uint64{}
		for id, progress := range status.Progress {
			shown.Match[name(id)] = progress.Match
			if progress.RecentActive && id != n.id { // whether it says so of itself differs by release
				shown.Active = append(shown.Active, name(id))
			}
		}
		sort.Strings(shown.Active)
	}
	shown.Config = n.voters()
	elapsed, transfer, yes, no := hidden(n.RawNode)
	shown.Elapsed, shown.Transfer, shown.Yes, shown.No = elapsed, name(transfer), yes, no
	return shown
}
