//go:build values

package main

import (
	"bytes"

	pb "go.etcd.io/raft/v3/raftpb"
)

type (
	raftMessage = pb.Message
	hardState   = pb.HardState
	confState   = pb.ConfState
	entry       = pb.Entry
	snapshot    = pb.Snapshot
)

// InitialState says who votes: nobody changes it.
func (d disk) InitialState() (hardState, confState, error) {
	hard, _, err := d.MemoryStorage.InitialState()
	return hard, *d.voters, err
}

func numbers(hard hardState) (term, vote, commit uint64) {
	return hard.Term, hard.Vote, hard.Commit
}

func shown(m raftMessage) *Message {
	message := &Message{
		Kind: m.Type.String(), From: name(m.From), To: name(m.To), Term: m.Term, Index: m.Index,
		LogTerm: m.LogTerm, Commit: m.Commit, Reject: m.Reject,
		Forced: bytes.Equal(m.Context, []byte("CampaignTransfer")), from: m.From, to: m.To, raw: m,
	}
	for _, e := range m.Entries {
		message.Entries = append(message.Entries, e.Term)
	}
	if m.Type == pb.MsgSnap {
		message.Index, message.LogTerm = m.Snapshot.Metadata.Index, m.Snapshot.Metadata.Term
	}
	return message
}

func index(e entry) uint64 { return e.Index }

func (n *node) restored(s snapshot) (*pb.ConfState, uint64) { return n.disk.voters, s.Metadata.Index }

// Nobody changes who votes in these releases' runs.
func (n *node) Change(_, _, _ []uint64, _, _ bool) {}
func (n *node) apply(entry)                        {}
func (n *node) voters() *Voters                    { return nil }
