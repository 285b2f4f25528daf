package serve

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// pauses notes how long kube-scheduler is busy between filter and prioritize.
type pauses struct {
	lock sync.Mutex
	last time.Time
	all  []int64
}

func (p *pauses) filtered() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.last = time.Now()
}

func (p *pauses) prioritizing() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.all = append(p.all, time.Since(p.last).Nanoseconds())
}

// show answers with all pauses since it was last asked, in nanoseconds.
func (p *pauses) show(w http.ResponseWriter, _ *http.Request) {
	p.lock.Lock()
	defer p.lock.Unlock()
	_ = json.NewEncoder(w).Encode(p.all)
	p.all = nil
}
