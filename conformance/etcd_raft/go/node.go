package main

// What the harness needs of a node.  `raft_*.go` have it for the releases of raft, whose types differ.

// Message is what a recording shows of a message; raw is raft's own.
type Message struct {
	ID      string   `json:"id"`             // its sender, and its number there
	Copy    int      `json:"copy,omitempty"` // how often it was received before
	Kind    string   `json:"kind"`
	From    string   `json:"from,omitempty"`
	To      string   `json:"to,omitempty"`
	Term    uint64   `json:"term"`
	Index   uint64   `json:"index"`
	LogTerm uint64   `json:"log_term"`
	Commit  uint64   `json:"commit"`
	Entries []uint64 `json:"entries,omitempty"` // their terms
	Reject  bool     `json:"reject"`
	Forced  bool     `json:"forced,omitempty"`

	Batch int `json:"batch,omitempty"` // after so many of the event's applications

	from, to uint64
	received int
	raw      any
}

// State is what a recording shows of a node; Active and Match only of a leader, and Yes and No of who may become one.
type State struct {
	Term     uint64            `json:"term"`
	Vote     string            `json:"vote"`
	Role     string            `json:"role"`
	Lead     string            `json:"lead"`
	Commit   uint64            `json:"commit"`
	Transfer string            `json:"transfer"`
	Elapsed  int64             `json:"elapsed"` // ticks
	Starts   int               `json:"starts"`
	Yes      []string          `json:"yes,omitempty"`
	No       []string          `json:"no,omitempty"`
	Last     uint64            `json:"last"`
	LastTerm uint64            `json:"last_term"`
	Match    map[string]uint64 `json:"match,omitempty"`
	Active   []string          `json:"active,omitempty"`
	Config   *Voters           `json:"config,omitempty"`
	Start    uint64            `json:"start"`         // how many entries are compacted
	Log      *[]uint64         `json:"log,omitempty"` // the terms of the others, where they changed
}

// Voters is who votes: two sets, while the configuration is joint.
type Voters struct {
	Voters   []string `json:"voters"`
	Outgoing []string `json:"outgoing"`
	Learners []string `json:"learners"`
	Auto     bool     `json:"auto"`
}

// Config is the configuration of all nodes of a run; the First of the Servers vote at the beginning.
type Config struct {
	Servers     int
	First       int
	Bytes       int // of entries in a message
	PreVote     bool
	CheckQuorum bool
}

const (
	electionTicks  = 3
	heartbeatTicks = 1
)
