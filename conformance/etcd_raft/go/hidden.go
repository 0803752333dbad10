package main

import (
	"reflect"
	"sort"
)

// hidden is what a node does not tell in all releases: the ticks since it heard of a leader, whom it hands over to, and the
// votes that it has as a candidate.  It is only read.
func hidden(node any) (elapsed int64, transfer uint64, yes, no []string) {
	raft := reflect.ValueOf(node).Elem().FieldByName("raft").Elem()
	elapsed = raft.FieldByName("electionElapsed").Int()
	transfer = raft.FieldByName("leadTransferee").Uint()
	votes := raft.FieldByName("votes") // of v3.3
	for _, field := range []string{"prs", "trk"} {
		if tracker := raft.FieldByName(field); tracker.IsValid() && tracker.Kind() == reflect.Struct {
			votes = tracker.FieldByName("Votes")
		}
	}
	for each := votes.MapRange(); each.Next(); {
		if voter := name(each.Key().Uint()); each.Value().Bool() {
			yes = append(yes, voter)
		} else {
			no = append(no, voter)
		}
	}
	sort.Strings(yes)
	sort.Strings(no)
	return elapsed, transfer, yes, no
}
