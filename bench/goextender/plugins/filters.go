package main

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	corev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// A filter returns why a node cannot run the pod, "" if it can.
type filter func(info *nodeInfo) string

// filters returns the three filters, with what depends on the pod alone computed once.
func filters(pod *v1.Pod) []filter {
	return []filter{taintToleration(pod), nodeAffinity(pod), resourcesFit(pod)}
}

func taintToleration(pod *v1.Pod) filter {
	logger := klog.Background()
	repels := func(taint *v1.Taint) bool {
		return taint.Effect == v1.TaintEffectNoSchedule || taint.Effect == v1.TaintEffectNoExecute
	}
	return func(info *nodeInfo) string {
		taints, tolerations := info.node.Spec.Taints, pod.Spec.Tolerations
		if _, found := corev1.FindMatchingUntoleratedTaint(logger, taints, tolerations, repels, false); found {
			return "node(s) had untolerated taint(s)"
		}
		return ""
	}
}

func nodeAffinity(pod *v1.Pod) filter {
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	return func(info *nodeInfo) string {
		if matches, err := required.Match(info.node); err != nil || !matches {
			return "node(s) didn't match Pod's node affinity/selector"
		}
		return ""
	}
}

func resourcesFit(pod *v1.Pod) filter {
	wanted, _ := requests(pod)
	return func(info *nodeInfo) string {
		var short []string
		if info.pods+1 > info.maxPods {
			short = append(short, "Too many pods")
		}
		if wanted.cpu > 0 && wanted.cpu > info.allocatable.cpu-info.requested.cpu {
			short = append(short, "Insufficient cpu")
		}
		if wanted.memory > 0 && wanted.memory > info.allocatable.memory-info.requested.memory {
			short = append(short, "Insufficient memory")
		}
		return strings.Join(short, ", ")
	}
}
