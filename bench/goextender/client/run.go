package main

import (
	"math/rand/v2"
	"time"
)

// run goes round by round through all contenders, in an order that rotates, so that other work
// on the machine affects all of them alike.
func run(wanted *job, pods *pods, progress func(int)) ([]round, error) {
	nodes, err := clusterNodes(wanted.API, wanted.Nodes)
	if err != nil {
		return nil, err
	}
	template, err := podTemplate(wanted.Pod)
	if err != nil {
		return nil, err
	}
	callers := make([]*caller, len(wanted.Contenders))
	for i, one := range wanted.Contenders {
		callers[i] = newCaller(one)
	}
	var rounds []round
	random := rand.New(rand.NewPCG(wanted.Seed, 0))
	began := time.Now()
	for number := range wanted.WarmUp + wanted.Rounds {
		if number == wanted.WarmUp {
			began = time.Now()
		}
		if wanted.Seconds > 0 && time.Since(began).Seconds() > wanted.Seconds && len(rounds) > 0 {
			break
		}
		question, err := newQuestion(wanted, nodes, number, random)
		if err != nil {
			return nil, err
		}
		for i := range callers {
			caller := callers[(i+number)%len(callers)]
			before := processorTime(caller.PIDs)
			one, err := caller.schedule(question, pods.next(template, &caller.contender), wanted.PauseMS)
			one.Processor = processorTime(caller.PIDs) - before
			if err != nil {
				one.Failure = err.Error()
			}
			if number >= wanted.WarmUp {
				rounds = append(rounds, one)
			}
		}
		progress(number + 1)
	}
	return rounds, nil
}
