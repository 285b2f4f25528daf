package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

const timeout = 60 * time.Second

// caller has kube-scheduler's manners: its transport, its one connection, its JSON.
type caller struct {
	contender
	client *http.Client
}

func newCaller(one contender) *caller {
	transport := utilnet.SetTransportDefaults(&http.Transport{})
	return &caller{one, &http.Client{Transport: transport, Timeout: timeout}}
}

// schedule calls filter, then prioritize for the nodes that remain, as they were answered.
func (c *caller) schedule(question *question, pod *v1.Pod, pauseMS float64) (round, error) {
	made := round{Contender: c.Name}
	body, err := encode(pod, question.whole, question.names)
	if err != nil {
		return made, err
	}
	var kept extenderv1.ExtenderFilterResult
	if made.Filter, err = c.call(c.FilterPath, body, &kept); err != nil {
		return made, err
	}
	whole, names, err := survivors(question, &kept)
	if err != nil {
		return made, err
	}
	if body, err = encode(pod, whole, names); err != nil {
		return made, err
	}
	made.Feasible = len(names)
	if c.PrioritizePath == "" {
		return made, nil
	}
	time.Sleep(time.Duration(pauseMS * float64(time.Millisecond)))
	var scores extenderv1.HostPriorityList
	made.Prioritize, err = c.call(c.PrioritizePath, body, &scores)
	made.Scored = len(scores)
	return made, err
}

// survivors returns what is sent on to prioritize. Whole nodes are sent as they were answered;
// what is unchanged is not encoded again, which would only take the bench's time.
func survivors(question *question, kept *extenderv1.ExtenderFilterResult) (json.RawMessage, []string, error) {
	if kept.Error != "" {
		return nil, nil, fmt.Errorf("filter: %s", kept.Error)
	}
	if question.nodes == nil {
		if kept.NodeNames == nil || len(*kept.NodeNames) == 0 {
			return nil, nil, fmt.Errorf("no feasible nodes")
		}
		return nil, *kept.NodeNames, nil
	}
	if kept.Nodes == nil || len(kept.Nodes.Items) == 0 {
		return nil, nil, fmt.Errorf("no feasible nodes")
	}
	names := make([]string, len(kept.Nodes.Items))
	for i := range kept.Nodes.Items {
		names[i] = kept.Nodes.Items[i].Name
	}
	if len(names) == len(question.names) {
		return question.whole, names, nil
	}
	list := &v1.NodeList{Items: make([]v1.Node, len(names))}
	for i, name := range names {
		list.Items[i] = question.nodes.Items[question.byAll[name]]
	}
	whole, err := json.Marshal(list)
	return whole, names, err
}

// encode writes ExtenderArgs as json.Marshal would.
func encode(pod *v1.Pod, whole json.RawMessage, names []string) ([]byte, error) {
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	list := []byte("null")
	if whole == nil {
		if list, err = json.Marshal(names); err != nil {
			return nil, err
		}
		whole = json.RawMessage("null")
	}
	parts := [][]byte{[]byte(`{"Pod":`), text, []byte(`,"Nodes":`), whole, []byte(`,"NodeNames":`), list, []byte("}")}
	return bytes.Join(parts, nil), nil
}

func (c *caller) call(verb string, body []byte, answer any) (call, error) {
	made := call{Sent: len(body)}
	began := time.Now()
	request, err := http.NewRequest(http.MethodPost, c.URL+"/"+verb, bytes.NewReader(body))
	if err != nil {
		return made, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return made, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return made, fmt.Errorf("%s: %s", verb, response.Status)
	}
	noted := &notedReader{reader: response.Body}
	err = json.NewDecoder(noted).Decode(answer)
	made.Decoded = time.Since(began).Nanoseconds()
	made.Answered = noted.last.Sub(began).Nanoseconds()
	made.Received = noted.size
	return made, err
}

// notedReader notes when something was last read, and how much.
type notedReader struct {
	reader io.Reader
	last   time.Time
	size   int
}

func (r *notedReader) Read(into []byte) (int, error) {
	n, err := r.reader.Read(into)
	r.last, r.size = time.Now(), r.size+n
	return n, err
}
