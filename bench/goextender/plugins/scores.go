package main

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

const maxScore = 100

// A score plugin fills in 0 to 100 for each node.
type score struct {
	weight int64
	run    func(pod *v1.Pod, nodes []*nodeInfo, into []int64)
}

var scores = []score{
	{weight: 3, run: avoidTaints},
	{weight: 1, run: leastAllocated},
	{weight: 1, run: balancedAllocation},
}

// avoidTaints counts PreferNoSchedule taints: 100 for nodes without, 0 for those with the most.
func avoidTaints(pod *v1.Pod, nodes []*nodeInfo, into []int64) {
	logger, most := klog.Background(), int64(0)
	for i, info := range nodes {
		into[i] = 0
		for j := range info.node.Spec.Taints {
			taint := &info.node.Spec.Taints[j]
			if taint.Effect == v1.TaintEffectPreferNoSchedule && !tolerated(logger, pod, taint) {
				into[i]++
			}
		}
		most = max(most, into[i])
	}
	for i := range into {
		if most == 0 {
			into[i] = maxScore
		} else {
			into[i] = maxScore - into[i]*maxScore/most
		}
	}
}

func tolerated(logger klog.Logger, pod *v1.Pod, taint *v1.Taint) bool {
	for i := range pod.Spec.Tolerations {
		if pod.Spec.Tolerations[i].ToleratesTaint(logger, taint, false) {
			return true
		}
	}
	return false
}

func leastAllocated(pod *v1.Pod, nodes []*nodeInfo, into []int64) {
	_, wanted := requests(pod)
	for i, info := range nodes {
		cpu := free(info.allocatable.cpu, info.nonzero.cpu+wanted.cpu)
		memory := free(info.allocatable.memory, info.nonzero.memory+wanted.memory)
		into[i] = (cpu + memory) / 2
	}
}

func free(allocatable, requested int64) int64 {
	if allocatable == 0 || requested > allocatable {
		return 0
	}
	return (allocatable - requested) * maxScore / allocatable
}

// balancedAllocation scores how much the pod evens out the shares of CPU and memory, as in 1.36.
func balancedAllocation(pod *v1.Pod, nodes []*nodeInfo, into []int64) {
	wanted, _ := requests(pod)
	for i, info := range nodes {
		after := info.requested
		after.add(wanted)
		gain := balance(info.allocatable, after) - balance(info.allocatable, info.requested)
		into[i] = maxScore/2 + (maxScore/2+gain)/2
	}
}

func balance(allocatable, requested amounts) int64 {
	cpu := math.Min(float64(requested.cpu)/float64(allocatable.cpu), 1)
	memory := math.Min(float64(requested.memory)/float64(allocatable.memory), 1)
	return int64((1 - math.Abs((cpu-memory)/2)) * maxScore)
}
