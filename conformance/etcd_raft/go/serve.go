package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
)

// step is one input of one node: a message, which the binding has of another node or writes itself, or what `Do` says.
type step struct {
	Do   string
	Args struct {
		At, To uint64
		With   raftMessage
	}
}

// request is one of specchk's protocol (docs/any-language.md); a snapshot is all steps since the start.
type request struct {
	step
	ID    int
	Hello *struct {
		Constants struct{ Pre_vote, Check_quorum bool }
		Sorts     struct{ Server []string }
	}
	Observe, Snapshot bool
	Restore           []step
}

// take gives a node an input.  A `tick` is as many ticks as it takes until `To` have passed since it heard of a leader.
// What the node sends is the answer, and goes nowhere.
func (s step) take(nodes []*node) (*node, []*Message) {
	n := nodes[s.Args.At-1]
	switch s.Do {
	case "message":
		n.Receive(&Message{raw: s.Args.With})
	case "tick":
		for left := int64(s.Args.To) - n.State().Elapsed; left > 0; left-- {
			n.Tick()
		}
	case "propose":
		n.Propose()
	case "transfer":
		n.Transfer(s.Args.To)
	case "restart":
		n.Restart()
	}
	sent, _ := n.Store()
	return n, sent
}

// serve answers requests until there are no more.
func serve() {
	// So every election timeout is as long as can be.
	longest := bytes.Repeat([]byte{electionTicks - 1}, 1<<16)
	config, nodes, taken := Config{}, []*node{}, []step{}
	lines, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for line, err := lines.ReadBytes('\n'); err == nil; line, err = lines.ReadBytes('\n') {
		var asked request
		must(json.Unmarshal(line, &asked))
		answer := map[string]any{"id": asked.ID}
		switch {
		case asked.Do != "":
			taken = append(taken, asked.step)
			n, sent := asked.take(nodes)
			answer["accepted"] = map[string]any{"sent": sent, "after": n.State()}
		case asked.Observe:
			states := map[string]State{}
			for _, n := range nodes {
				states[name(n.id)] = n.State()
			}
			answer["state"] = states
		case asked.Snapshot:
			answer["snapshot"] = taken
		case asked.Hello != nil:
			servers, c := len(asked.Hello.Sorts.Server), asked.Hello.Constants
			config = Config{servers, servers, 64, c.Pre_vote, c.Check_quorum}
			answer["ready"] = map[string]any{"protocol": 1, "can": []string{"reset", "snapshot"}}
			fallthrough
		default: // `restore`, `reset`, `quit`
			rand.Reader = bytes.NewReader(longest)
			answer["ok"], nodes, taken = true, newRun(0, config).nodes, append([]step{}, asked.Restore...)
			for _, each := range taken {
				each.take(nodes)
			}
		}
		must(json.NewEncoder(out).Encode(answer))
		if lines.Buffered() == 0 {
			must(out.Flush())
		}
	}
}
