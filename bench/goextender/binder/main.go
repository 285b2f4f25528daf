// Binds pods as kube-scheduler does: with client-go like its own binder, or through an extender.
//
// It reads jobs from stdin, one JSON document per line, and answers each with one line.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"moorage/bench/goextender/clientgo"
)

type pod struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	Node string    `json:"node"`
}

type job struct {
	Extender  string `json:"extender"` // a URL, "" for client-go
	Namespace string `json:"namespace"`
	InFlight  int    `json:"inFlight"`
	Pods      []pod  `json:"pods"`
}

type answer struct {
	Nanoseconds []int64 `json:"nanoseconds"` // of each bind that succeeded
	Total       int64   `json:"total"`       // of all together
	Failures    int     `json:"failures"`
	Failure     string  `json:"failure"` // one of them
}

type bind func(one pod) error

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	flag.Parse()
	client, err := clientgo.Connect(*kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var wanted job
		if err := json.Unmarshal(text, &wanted); err != nil {
			log.Fatal(err)
		}
		how := withClientGo(client, wanted.Namespace)
		if wanted.Extender != "" {
			how = withExtender(wanted.Extender, wanted.Namespace)
		}
		if err := out.Encode(run(&wanted, how)); err != nil {
			log.Fatal(err)
		}
	}
}

func withClientGo(client kubernetes.Interface, namespace string) bind {
	return func(one pod) error {
		return clientgo.Bind(client, namespace, one.Name, one.UID, one.Node)
	}
}

func withExtender(url, namespace string) bind {
	client := &http.Client{Transport: utilnet.SetTransportDefaults(&http.Transport{}), Timeout: 30 * time.Second}
	return func(one pod) error {
		body, err := json.Marshal(extenderv1.ExtenderBindingArgs{
			PodName: one.Name, PodNamespace: namespace, PodUID: one.UID, Node: one.Node,
		})
		if err != nil {
			return err
		}
		response, err := client.Post(url+"/bind", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("bind: %s", response.Status)
		}
		var result extenderv1.ExtenderBindingResult
		if err := json.NewDecoder(response.Body).Decode(&result); err != nil {
			return err
		}
		if result.Error != "" {
			return errors.New(result.Error)
		}
		return nil
	}
}

func run(wanted *job, how bind) *answer {
	made, queue := &answer{Nanoseconds: []int64{}}, make(chan pod)
	var lock sync.Mutex
	var workers sync.WaitGroup
	began := time.Now()
	for range wanted.InFlight {
		workers.Go(func() {
			for one := range queue {
				start := time.Now()
				err := how(one)
				took := time.Since(start).Nanoseconds()
				lock.Lock()
				if err == nil {
					made.Nanoseconds = append(made.Nanoseconds, took)
				} else {
					made.Failures, made.Failure = made.Failures+1, err.Error()
				}
				lock.Unlock()
			}
		})
	}
	for _, one := range wanted.Pods {
		queue <- one
	}
	close(queue)
	workers.Wait()
	made.Total = time.Since(began).Nanoseconds()
	return made
}
