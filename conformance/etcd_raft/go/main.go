// Drives nodes of go.etcd.io/raft through random schedules and faults, and writes what they do as recordings.
//
// A run has its own seed: the same program takes the same steps again.  Each step is an input of one node, with everything
// that the node stores and sends until it has nothing to do; a line says what the input was, what was sent, and what
// the node is then.  Messages are lost, late, repeated and overtaken, links break and heal, and nodes restart, with and without
// what they were about to store.
package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
)

const (
	mostEntries = 60 // the spec's logs have 64; from here on, nobody proposes or campaigns
	mostLate    = 24 // messages on the way; the oldest are lost
)

// Event is a line of a recording.
type Event struct {
	At      string     `json:"at"`
	Seq     int        `json:"seq"`
	Event   string     `json:"event"`
	To      string     `json:"to,omitempty"`   // who is to lead, or failed to get a snapshot
	With    *Message   `json:"with,omitempty"` // what is received
	Sent    []*Message `json:"sent,omitempty"`
	After   *State     `json:"after,omitempty"`
	Change  *Voters    `json:"change,omitempty"` // to be; nobody: a joint configuration is left
	Joint   bool       `json:"joint,omitempty"`
	Applied []uint64   `json:"applied,omitempty"` // up to where, step by step
	Why     string     `json:"why,omitempty"`     // of a panic
	Lost    []string   `json:"lost,omitempty"`
}

type run struct {
	random  *mathrand.Rand
	config  Config
	nodes   []*node
	way     []*Message
	unheard map[string]bool
	broken  map[[2]uint64]bool
	events  []Event
	entries uint64
	terms   uint64
	changes bool
}

func name(id uint64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("s%d", id)
}

func names(ids []uint64) []string {
	all := []string{}
	for _, id := range ids {
		all = append(all, name(id))
	}
	sort.Strings(all)
	return all
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func newRun(seed int64, config Config) *run {
	r := &run{random: mathrand.New(mathrand.NewSource(seed)), config: config, unheard: map[string]bool{}, broken: map[[2]uint64]bool{}}
	for n := 1; n <= config.Servers; n++ {
		r.nodes = append(r.nodes, NewNode(uint64(n), config))
	}
	return r
}

func (r *run) chance(percent int) bool { return r.random.Intn(100) < percent }

// take gives a node an input, and writes the line.  A panic is the last line of a run.
func (r *run) take(id uint64, event Event, input func(*node)) (ok bool) {
	node := r.nodes[id-1]
	node.events++
	event.At, event.Seq = name(id), node.events
	defer func() {
		if why := recover(); why != nil {
			event.Event, event.Why = "panic", fmt.Sprint(why)
			r.events = append(r.events, event)
			ok = false
		}
	}()
	input(node)
	event.Sent, event.Applied = node.Store()
	for _, m := range event.Sent {
		node.sent++
		m.ID = fmt.Sprintf("%s/%d", event.At, node.sent)
		r.unheard[m.ID] = true
	}
	if event.Event == "restart" {
		node.boots++
	}
	state := node.State()
	state.Starts = node.boots
	if !r.changes {
		state.Config, event.Applied = nil, nil
	}
	if state.Role == "StateFollower" || state.Role == "StateLeader" {
		state.Yes, state.No = nil, nil
	}
	if event.Event != "restart" && reflect.DeepEqual(*state.Log, node.log) {
		state.Log = nil
	} else {
		node.log = *state.Log
	}
	r.entries, r.terms = max(r.entries, state.Last), max(r.terms, state.Term)
	event.After = &state
	r.events = append(r.events, event)
	r.way = append(r.way, event.Sent...)
	if len(r.way) > mostLate {
		r.way = r.way[len(r.way)-mostLate:]
	}
	return true
}

func (r *run) leader() uint64 {
	var found []uint64
	for n := range r.nodes {
		if r.nodes[n].State().Role == "StateLeader" {
			found = append(found, uint64(n+1))
		}
	}
	if len(found) == 0 {
		return 0
	}
	return found[r.random.Intn(len(found))]
}

func (r *run) deliver() bool {
	// Mostly in order.
	at := 0
	if r.chance(30) {
		at = r.random.Intn(len(r.way))
	}
	m := r.way[at]
	if !r.chance(6) {
		r.way = append(r.way[:at:at], r.way[at+1:]...)
	}
	if r.broken[[2]uint64{m.from, m.to}] || r.chance(5) {
		if m.Kind == "MsgSnap" {
			return r.take(m.from, Event{Event: "snapshot-failed", To: m.To}, func(n *node) { n.SnapshotFailed(m.to) })
		}
		return true
	}
	shown := *m
	shown.Copy = m.received
	delete(r.unheard, m.ID)
	m.received++
	return r.take(m.to, Event{Event: m.Kind, With: &shown}, func(n *node) { n.Receive(m) })
}

func (r *run) faults() bool {
	id := uint64(1 + r.random.Intn(len(r.nodes)))
	other := uint64(1 + r.random.Intn(len(r.nodes)))
	leader := r.leader()
	switch r.random.Intn(8) {
	case 0: // a link breaks in one direction
		r.broken[[2]uint64{id, other}] = true
	case 1: // a node is alone
		for n := range r.nodes {
			r.broken[[2]uint64{id, uint64(n + 1)}], r.broken[[2]uint64{uint64(n + 1), id}] = true, true
		}
	case 2, 3:
		r.broken = map[[2]uint64]bool{}
	case 4:
		if !bootstraps || len(r.nodes[id-1].log) > 0 {
			return r.take(id, Event{Event: "restart"}, (*node).Restart)
		}
	case 5: // it has taken an input, and stored nothing of it
		for at, m := range r.way {
			if m.to == id && (!bootstraps || len(r.nodes[id-1].log) > 0) {
				r.way = append(r.way[:at:at], r.way[at+1:]...)
				return r.take(id, Event{Event: "restart"}, func(n *node) { n.Receive(m); n.Restart() })
			}
		}
	case 6:
		if leader != 0 && leader != other && r.votes(leader, other) && r.nodes[leader-1].State().Transfer != name(other) {
			return r.take(leader, Event{Event: "transfer", To: name(other)}, func(n *node) { n.Transfer(other) })
		}
	case 7:
		commit := r.nodes[id-1].State().Commit
		if commit > r.nodes[id-1].Start()+2 {
			if !r.changes { // else the snapshot's configuration is that of all that is applied
				commit--
			}
			return r.take(id, Event{Event: "compact"}, func(n *node) { n.Compact(commit) })
		}
	}
	return true
}

// votes says whether a node takes another one for a voter.
func (r *run) votes(id, other uint64) bool {
	now := r.nodes[id-1].State().Config
	return !r.changes || slices.Contains(append(now.Voters, now.Outgoing...), name(other))
}

// proposes says whether a leader takes proposals.
func (r *run) proposes(leader uint64) bool {
	return r.votes(leader, leader) && r.nodes[leader-1].State().Transfer == ""
}

// change proposes other voters, or to leave a joint configuration.
func (r *run) change(leader uint64) bool {
	now := r.nodes[leader-1].State().Config
	var add, remove, learn []uint64
	to, joint, auto := Voters{Learners: []string{}}, r.chance(50), r.chance(50)
	for n := range r.nodes {
		id := uint64(n + 1)
		votes, learns := slices.Contains(now.Voters, name(id)), slices.Contains(now.Learners, name(id))
		switch turns := r.chance(30); {
		case votes && turns:
			remove = append(remove, id)
		case votes:
			to.Voters = append(to.Voters, name(id))
		case turns && (learns || r.chance(50)):
			add, to.Voters = append(add, id), append(to.Voters, name(id))
		case turns || learns:
			to.Learners = append(to.Learners, name(id))
			if !learns {
				learn = append(learn, id)
			}
		}
	}
	if len(now.Outgoing) > 0 {
		return r.take(leader, Event{Event: "leave"}, func(n *node) { n.Change(nil, nil, nil, false, false) })
	}
	changes := len(add) + len(remove) + len(learn)
	if changes == 0 || len(to.Voters) == 0 {
		return true
	}
	joint = joint || changes > 1
	to.Auto = joint && auto
	return r.take(leader, Event{Event: "change", Change: &to, Joint: joint}, func(n *node) { n.Change(add, remove, learn, joint, auto) })
}

func (r *run) step() bool {
	calm := r.entries >= mostEntries
	if calm {
		r.broken = map[[2]uint64]bool{}
	}
	kind := r.random.Intn(100)
	if r.changes && !calm && r.chance(4) {
		if leader := r.leader(); leader != 0 && r.proposes(leader) {
			return r.change(leader)
		}
	}
	switch {
	case kind < 2 && !calm:
		return r.faults()
	case kind < 6 && !calm:
		if leader := r.leader(); leader != 0 && r.proposes(leader) {
			return r.take(leader, Event{Event: "propose"}, (*node).Propose)
		}
	case kind < 30+8*len(r.way):
		if len(r.way) > 0 {
			return r.deliver()
		}
	default:
		id := uint64(1 + r.random.Intn(len(r.nodes)))
		if !calm || r.nodes[id-1].State().Role == "StateLeader" {
			return r.take(id, Event{Event: "tick"}, (*node).Tick)
		}
	}
	return true
}

// write writes the recording, which says at the end which messages nobody received.
func (r *run) write(path string, seed int64) {
	r.events = append(r.events, Event{At: "network", Seq: 1, Event: "lost", Lost: slices.Sorted(maps.Keys(r.unheard))})
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	must(lines.Encode(map[string]any{
		"format": "etcd-raft/1", "seed": seed, "servers": r.config.Servers, "voters": r.config.First, "changes": r.changes, "pre_vote": r.config.PreVote, "first_term": firstTerm,
		"check_quorum": r.config.CheckQuorum, "terms": r.terms, "entries": r.entries, "election_ticks": electionTicks,
	}))
	for _, event := range r.events {
		must(lines.Encode(event))
	}
	must(lines.Encode(map[string]any{"end": true, "events": len(r.events)}))
	must(os.WriteFile(path, out.Bytes(), 0o666))
}

func main() {
	first := flag.Int64("seed", 0, "the first run's seed")
	runs := flag.Int64("runs", 1, "how many runs")
	events := flag.Int("events", 1000, "events in a run")
	servers := flag.Int("servers", 3, "nodes")
	voters := flag.Int("voters", 0, "how many of them vote at first; by default, all")
	changes := flag.Bool("changes", false, "change who votes")
	size := flag.Int("bytes", 64, "entries' bytes in a message; 64 are some five entries")
	mode := flag.String("mode", "", "pre-vote, check-quorum, both or none; by default, the seed decides")
	out := flag.String("out", "recordings", "the folder to write to")
	requests := flag.Bool("serve", false, "answer requests instead, those of specchk's suites")
	flag.Parse()
	if *requests {
		serve()
		return
	}
	must(os.MkdirAll(*out, 0o777))
	modes := []string{"both", "pre-vote", "check-quorum", "none"}
	for seed := *first; seed < *first+*runs; seed++ {
		// Raft draws its timeouts from here.
		rand.Reader = io.Reader(mathrand.New(mathrand.NewSource(seed)))
		chosen := cmp.Or(*mode, modes[seed%4])
		r := newRun(seed, Config{*servers, cmp.Or(*voters, *servers), *size, chosen == "both" || chosen == "pre-vote", chosen == "both" || chosen == "check-quorum"})
		r.changes = *changes
		// In the end nobody may be left who has something to do.
		for tries := 0; tries < 100**events && len(r.events) < *events-1 && r.terms < 60 && r.step(); tries++ {
		}
		r.write(filepath.Join(*out, fmt.Sprintf("seed-%d.ndjson", seed)), seed)
	}
}
