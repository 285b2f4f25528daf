// The reference of all budgets: an extender that keeps every node and scores all of them 0.
package main

import (
	"errors"
	"flag"
	"log"

	"k8s.io/client-go/kubernetes"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"moorage/bench/goextender/clientgo"
	"moorage/bench/goextender/serve"
)

type nothing struct {
	client kubernetes.Interface // nil if it need not bind
}

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

func (n nothing) Bind(args *extenderv1.ExtenderBindingArgs) *extenderv1.ExtenderBindingResult {
	err := errors.New("started without -kubeconfig")
	if n.client != nil {
		err = clientgo.Bind(n.client, args.PodNamespace, args.PodName, args.PodUID, args.Node)
	}
	if err != nil {
		return &extenderv1.ExtenderBindingResult{Error: err.Error()}
	}
	return &extenderv1.ExtenderBindingResult{}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server, to bind pods")
	flag.Parse()
	var extender nothing
	if *kubeconfig != "" {
		client, err := clientgo.Connect(*kubeconfig)
		if err != nil {
			log.Fatal(err)
		}
		extender.client = client
	}
	serve.Run(extender)
}
