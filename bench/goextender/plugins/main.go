// The second reference: an extender with three filters and three scores over a cache of the
// cluster, written as a Go programmer would who needs just these. The plugins are the formulas of
// kube-scheduler's TaintToleration, NodeAffinity, NodeResourcesFit (filters), and TaintToleration,
// NodeResourcesFit with LeastAllocated, NodeResourcesBalancedAllocation (scores).
//
// Where a real extender has informers, this one reads the cluster once when it starts: the bench
// does not count what informers cost.
package main

import (
	"flag"
	"log"
	"math"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"moorage/bench/goextender/serve"
)

const unknown = "node not known"

type extender struct{ cache cache }

func (e *extender) Filter(args *extenderv1.ExtenderArgs) *extenderv1.ExtenderFilterResult {
	failed := extenderv1.FailedNodesMap{}
	chain := filters(args.Pod)
	if args.NodeNames != nil {
		names := make([]string, 0, len(*args.NodeNames))
		for _, name := range *args.NodeNames {
			if reason := check(chain, e.cache[name]); reason != "" {
				failed[name] = reason
			} else {
				names = append(names, name)
			}
		}
		return &extenderv1.ExtenderFilterResult{NodeNames: &names, FailedAndUnresolvableNodes: failed}
	}
	kept := &v1.NodeList{Items: make([]v1.Node, 0, len(args.Nodes.Items))}
	for i := range args.Nodes.Items {
		node := &args.Nodes.Items[i]
		if reason := check(chain, e.cache[node.Name].withNode(node)); reason != "" {
			failed[node.Name] = reason
		} else {
			kept.Items = append(kept.Items, *node)
		}
	}
	return &extenderv1.ExtenderFilterResult{Nodes: kept, FailedAndUnresolvableNodes: failed}
}

func (e *extender) Prioritize(args *extenderv1.ExtenderArgs) extenderv1.HostPriorityList {
	nodes := e.known(args)
	total, one := make([]int64, len(nodes)), make([]int64, len(nodes))
	weights := int64(0)
	for _, plugin := range scores {
		plugin.run(args.Pod, nodes, one)
		weights += plugin.weight
		for i := range total {
			total[i] += plugin.weight * one[i]
		}
	}
	answer := make(extenderv1.HostPriorityList, len(nodes))
	for i, info := range nodes {
		mean := float64(total[i]) / float64(weights)
		rounded := math.Floor(mean + 0.5) // 0..100, as the scoreScale of Moorage's policies
		answer[i] = extenderv1.HostPriority{Host: info.node.Name, Score: int64(rounded)}
	}
	return answer
}

func (e *extender) known(args *extenderv1.ExtenderArgs) []*nodeInfo {
	if args.NodeNames != nil {
		nodes := make([]*nodeInfo, 0, len(*args.NodeNames))
		for _, name := range *args.NodeNames {
			if info := e.cache[name]; info != nil {
				nodes = append(nodes, info)
			}
		}
		return nodes
	}
	nodes := make([]*nodeInfo, len(args.Nodes.Items))
	for i := range args.Nodes.Items {
		nodes[i] = e.cache[args.Nodes.Items[i].Name].withNode(&args.Nodes.Items[i])
	}
	return nodes
}

func check(chain []filter, info *nodeInfo) string {
	if info == nil {
		return unknown
	}
	for _, filter := range chain {
		if reason := filter(info); reason != "" {
			return reason
		}
	}
	return ""
}

func main() {
	api := flag.String("api", "", "URL of the API server that has the nodes and pods")
	flag.Parse()
	cache, err := load(*api)
	if err != nil {
		log.Fatal(err)
	}
	serve.Run(&extender{cache: cache})
}
