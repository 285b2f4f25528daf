// The reference of all budgets: an extender that keeps every node and finds all of them alike.
package main

import (
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"moorage/bench/goextender/serve"
)

type nothing struct{}

func (nothing) Filter(args *extenderv1.ExtenderArgs) *extenderv1.ExtenderFilterResult {
	return &extenderv1.ExtenderFilterResult{Nodes: args.Nodes, NodeNames: args.NodeNames}
}

func (nothing) Prioritize(args *extenderv1.ExtenderArgs) extenderv1.HostPriorityList {
	if args.NodeNames != nil {
		scores := make(extenderv1.HostPriorityList, len(*args.NodeNames))
		for i, name := range *args.NodeNames {
			scores[i].Host = name
		}
		return scores
	}
	scores := make(extenderv1.HostPriorityList, len(args.Nodes.Items))
	for i := range args.Nodes.Items {
		scores[i].Host = args.Nodes.Items[i].Name
	}
	return scores
}

func main() { serve.Run(nothing{}) }
