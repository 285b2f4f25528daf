// The load: calls extenders as kube-scheduler does, one call at a time, and measures each.
//
// It reads jobs from stdin, one JSON document per line, and answers each with lines of JSON: some
// with progress, the last with what was measured.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
)

// contender is an extender that is measured.
type contender struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Profile string `json:"profile"` // the pods' schedulerName
	PIDs    []int  `json:"pids"`    // its processes
	Pods    string `json:"pods"`    // how its pods differ from each other: equal, numbered, unlike

	FilterPath     string `json:"filterPath"`     // below URL
	PrioritizePath string `json:"prioritizePath"` // "" if it is not to be called
}

// job is what to measure: all contenders in turn, round after round.
type job struct {
	API        string      `json:"api"` // where the nodes are
	Contenders []contender `json:"contenders"`
	Nodes      int         `json:"nodes"`   // how many of the cluster's nodes each call names
	Whole      bool        `json:"whole"`   // send whole nodes instead of names
	Changed    int         `json:"changed"` // nodes whose heartbeat is new in each round, with Whole
	Rounds     int         `json:"rounds"`
	WarmUp     int         `json:"warmUp"`  // rounds that do not count
	Seconds    float64     `json:"seconds"` // no new round after so long
	PauseMS    float64     `json:"pauseMs"` // between filter and prioritize
	Pod        any         `json:"pod"`     // a manifest; each pod has its own name, UID and what its kind requires
	Seed       uint64      `json:"seed"`
}

// call is what was measured of one call, times in nanoseconds.
type call struct {
	Answered int64 `json:"answered"` // until the last byte of the answer was here
	Decoded  int64 `json:"decoded"`  // until kube-scheduler would go on
	Sent     int   `json:"sent"`     // bytes
	Received int   `json:"received"` // bytes
}

// round is one pod's way.
type round struct {
	Contender  string `json:"contender"`
	Filter     call   `json:"filter"`
	Prioritize call   `json:"prioritize"`
	Feasible   int    `json:"feasible"`  // nodes
	Scored     int    `json:"scored"`    // nodes that the answer names
	Processor  int64  `json:"processor"` // nanoseconds that the contender's processes used
	Failure    string `json:"failure"`   // why the rest is to be ignored
}

// line is what is written.
type line struct {
	Progress int     `json:"progress,omitempty"` // rounds done
	Rounds   []round `json:"rounds,omitempty"`
	Error    string  `json:"error,omitempty"`
}

func main() {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	write := func(l line) {
		if err := out.Encode(l); err != nil {
			log.Fatal(err)
		}
	}
	var made pods
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var wanted job
		if err := json.Unmarshal(text, &wanted); err != nil {
			write(line{Error: err.Error()})
			continue
		}
		rounds, err := run(&wanted, &made, func(done int) { write(line{Progress: done}) })
		if err != nil {
			write(line{Error: err.Error()})
			continue
		}
		write(line{Rounds: rounds})
	}
}
