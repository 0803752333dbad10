//go:build !values

package main

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

type (
	raftMessage = *pb.Message
	hardState   = *pb.HardState
	confState   = *pb.ConfState
	entry       = *pb.Entry
	snapshot    = *pb.Snapshot
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

func index(e entry) uint64 { return e.GetIndex() }

func (n *node) restored(s snapshot) (*pb.ConfState, uint64) {
	return s.GetMetadata().GetConfState(), s.GetMetadata().GetIndex()
}

// Change proposes to change who votes; nobody and nothing: to leave a joint configuration.
func (n *node) Change(add, remove, learn []uint64, joint, auto bool) {
	change := &pb.ConfChangeV2{}
	for kind, ids := range map[pb.ConfChangeType][]uint64{
		pb.ConfChangeAddNode: add, pb.ConfChangeRemoveNode: remove, pb.ConfChangeAddLearnerNode: learn,
	} {
		for _, id := range ids {
			change.Changes = append(change.Changes, &pb.ConfChangeSingle{Type: kind.Enum(), NodeId: &id})
		}
	}
	if joint && auto {
		change.Transition = pb.ConfChangeTransitionJointImplicit.Enum()
	} else if joint {
		change.Transition = pb.ConfChangeTransitionJointExplicit.Enum()
	}
	_ = n.ProposeConfChange(change)
}

func (n *node) apply(e entry) {
	change, changes := &pb.ConfChange{}, &pb.ConfChangeV2{}
	switch e.GetType() {
	case pb.EntryConfChange:
		must(proto.Unmarshal(e.GetData(), change))
		n.disk.voters = n.ApplyConfChange(change)
	case pb.EntryConfChangeV2:
		must(proto.Unmarshal(e.GetData(), changes))
		n.disk.voters = n.ApplyConfChange(changes)
	}
}

func (n *node) voters() *Voters {
	c := n.disk.voters
	return &Voters{names(c.GetVoters()), names(c.GetVotersOutgoing()), names(c.GetLearners()), c.GetAutoLeave()}
}
