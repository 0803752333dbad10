//go:build !values

package main

import (
	"bytes"

	pb "go.etcd.io/raft/v3/raftpb"
)

type (
	raftMessage = *pb.Message
	hardState   = *pb.HardState
	confState   = *pb.ConfState
)

// InitialState says who votes: nobody changes it.
func (d disk) InitialState() (hardState, confState, error) {
	hard, _, err := d.MemoryStorage.InitialState()
	return hard, d.voters, err
}

func numbers(hard hardState) (term, vote, commit uint64) {
	return hard.GetTerm(), hard.GetVote(), hard.GetCommit()
}

func shown(m raftMessage) *Message {
	message := &Message{
		Kind: m.GetType().String(), From: name(m.GetFrom()), To: name(m.GetTo()), Term: m.GetTerm(), Index: m.GetIndex(),
		LogTerm: m.GetLogTerm(), Commit: m.GetCommit(), Reject: m.GetReject(),
		Forced: bytes.Equal(m.GetContext(), []byte("CampaignTransfer")), from: m.GetFrom(), to: m.GetTo(), raw: m,
	}
	for _, e := range m.GetEntries() {
		message.Entries = append(message.Entries, e.GetTerm())
	}
	if m.GetSnapshot() != nil {
		message.Index, message.LogTerm = m.GetSnapshot().GetMetadata().GetIndex(), m.GetSnapshot().GetMetadata().GetTerm()
	}
	return message
}
