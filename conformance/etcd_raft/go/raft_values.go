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
