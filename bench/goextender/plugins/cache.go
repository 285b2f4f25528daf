package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	idleMilliCPU = 100               // what a container without a request for CPU counts as when scoring
	idleMemory   = 200 * 1024 * 1024 // the same for memory
)

// amounts of the two resources that the plugins look at: in thousandths of a core, and in bytes.
type amounts struct{ cpu, memory int64 }

func (a *amounts) add(b amounts) { a.cpu, a.memory = a.cpu+b.cpu, a.memory+b.memory }

// nodeInfo is a node with the sums over its pods, kept as an informer's handlers would keep them.
type nodeInfo struct {
	node        *v1.Node
	allocatable amounts
	maxPods     int64
	requested   amounts
	nonzero     amounts
	pods        int64
}

// cache has all nodes by name.
type cache map[string]*nodeInfo

func newNodeInfo(node *v1.Node) *nodeInfo {
	have := node.Status.Allocatable
	return &nodeInfo{
		node:        node,
		allocatable: amounts{have.Cpu().MilliValue(), have.Memory().Value()},
		maxPods:     have.Pods().Value(),
	}
}

// withNode returns the sums over the pods with another version of the node.
func (n *nodeInfo) withNode(node *v1.Node) *nodeInfo {
	made := newNodeInfo(node)
	if n != nil {
		made.requested, made.nonzero, made.pods = n.requested, n.nonzero, n.pods
	}
	return made
}

// load reads what an informer would have: all nodes, and all pods on them.
func load(api string) (cache, error) {
	var nodes v1.NodeList
	if err := get(api+"/api/v1/nodes", &nodes); err != nil {
		return nil, err
	}
	var pods v1.PodList
	if err := get(api+"/api/v1/pods", &pods); err != nil {
		return nil, err
	}
	made := make(cache, len(nodes.Items))
	for i := range nodes.Items {
		made[nodes.Items[i].Name] = newNodeInfo(&nodes.Items[i])
	}
	for i := range pods.Items {
		if info := made[pods.Items[i].Spec.NodeName]; info != nil && !ended(&pods.Items[i]) {
			requested, nonzero := requests(&pods.Items[i])
			info.requested.add(requested)
			info.nonzero.add(nonzero)
			info.pods++
		}
	}
	return made, nil
}

func get(url string, into any) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

func ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// requests adds up the containers of a pod; init containers and overhead do not occur here.
func requests(pod *v1.Pod) (requested, nonzero amounts) {
	for i := range pod.Spec.Containers {
		wanted := pod.Spec.Containers[i].Resources.Requests
		one := amounts{wanted.Cpu().MilliValue(), wanted.Memory().Value()}
		requested.add(one)
		nonzero.add(amounts{
			or(wanted, v1.ResourceCPU, one.cpu, idleMilliCPU),
			or(wanted, v1.ResourceMemory, one.memory, idleMemory),
		})
	}
	return requested, nonzero
}

func or(wanted map[v1.ResourceName]resource.Quantity, name v1.ResourceName, value, otherwise int64) int64 {
	if _, found := wanted[name]; found {
		return value
	}
	return otherwise
}
