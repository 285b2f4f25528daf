package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// question is what all contenders are asked in one round: the same nodes in the same order.
type question struct {
	names []string
	nodes *v1.NodeList    // nil when names are sent
	byAll map[string]int  // where each node is in nodes
	whole json.RawMessage // nodes, encoded
}

func clusterNodes(api string, count int) ([]v1.Node, error) {
	response, err := http.Get(api + "/api/v1/nodes")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list v1.NodeList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	if len(list.Items) < count {
		return nil, fmt.Errorf("the cluster has %d nodes, not %d", len(list.Items), count)
	}
	return list.Items, nil
}

// newQuestion goes on in the list of nodes where the round before ended, as kube-scheduler does when
// it looks at a sample of them only.
func newQuestion(wanted *job, nodes []v1.Node, round int, random *rand.Rand) (*question, error) {
	order := schedulerOrder(wanted.Nodes, random)
	for i := range order {
		order[i] = (order[i] + round*wanted.Nodes) % len(nodes)
	}
	made := &question{names: make([]string, len(order))}
	for i, index := range order {
		made.names[i] = nodes[index].Name
	}
	if !wanted.Whole {
		return made, nil
	}
	for range wanted.Changed {
		heartbeat(&nodes[order[random.IntN(len(order))]])
	}
	made.nodes = &v1.NodeList{Items: make([]v1.Node, len(order))}
	made.byAll = make(map[string]int, len(order))
	for i, index := range order {
		made.nodes.Items[i] = nodes[index]
		made.byAll[nodes[index].Name] = i
	}
	var err error
	made.whole, err = json.Marshal(made.nodes)
	return made, err
}

// schedulerOrder returns the order in which kube-scheduler names nodes: its workers take chunks of
// the list side by side and note each node as they find that it fits. Two of them run at once here.
func schedulerOrder(count int, random *rand.Rand) []int {
	chunk := max(1, min(int(math.Sqrt(float64(count))), count/16+1))
	order, next := make([]int, 0, count), 0
	workers := [2][]int{}
	for len(order) < count {
		worker := &workers[random.IntN(2)]
		if len(*worker) == 0 {
			for end := min(next+chunk, count); next < end; next++ {
				*worker = append(*worker, next)
			}
		}
		if len(*worker) > 0 {
			order, *worker = append(order, (*worker)[0]), (*worker)[1:]
		}
	}
	return order
}

// heartbeat changes a node as kubelet does every five minutes.
func heartbeat(node *v1.Node) {
	version, _ := strconv.Atoi(node.ResourceVersion)
	node.ResourceVersion = strconv.Itoa(version + 1_000_000)
	conditions := make([]v1.NodeCondition, len(node.Status.Conditions))
	copy(conditions, node.Status.Conditions)
	for i := range conditions {
		conditions[i].LastHeartbeatTime = metav1.NewTime(time.Now())
	}
	node.Status.Conditions = conditions
}

func podTemplate(manifest any) (*v1.Pod, error) {
	text, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	template := &v1.Pod{}
	return template, json.Unmarshal(text, template)
}

// How the pods of a contender differ from each other; numbered is what is neither.
const (
	equal  = "equal"
	unlike = "unlike"
)

// pods makes one pod after another. It counts through all jobs, for a contender that remembers pods
// may do so from one job to the next.
type pods struct {
	made int
}

// next makes a pod for a contender. Name and uid are always its own. Numbered pods have labels of
// their own, as those of a StatefulSet; unlike ones also have a request and a toleration.
func (p *pods) next(template *v1.Pod, one *contender) *v1.Pod {
	p.made++
	pod := template.DeepCopy()
	pod.Name = fmt.Sprintf("%s-%d", pod.Name, p.made)
	pod.UID = types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", time.Now().Unix(), p.made))
	pod.ResourceVersion = strconv.Itoa(1000 + p.made)
	pod.CreationTimestamp = metav1.NewTime(time.Now())
	pod.Spec.SchedulerName = one.Profile
	if one.Pods != equal {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.StatefulSetPodNameLabel, pod.Name)
		metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.PodIndexLabel, strconv.Itoa(p.made))
	}
	if one.Pods == unlike {
		requests := pod.Spec.Containers[0].Resources.Requests
		memory := requests[v1.ResourceMemory]
		memory.Sub(*resource.NewQuantity(int64(p.made), resource.BinarySI))
		requests[v1.ResourceMemory] = memory
		own := v1.Toleration{Key: "example.com/" + pod.Name, Operator: v1.TolerationOpExists}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, own)
	}
	return pod
}
