// Package serve is what both reference extenders share: how they listen, and how they read calls
// and write answers. It is the way of nearly every extender written in Go.
package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Extender answers the two verbs that are measured.
type Extender interface {
	Filter(args *extenderv1.ExtenderArgs) *extenderv1.ExtenderFilterResult
	Prioritize(args *extenderv1.ExtenderArgs) extenderv1.HostPriorityList
}

// Binder is an extender that binds as well.
type Binder interface {
	Bind(args *extenderv1.ExtenderBindingArgs) *extenderv1.ExtenderBindingResult
}

// Run listens on a free port of the loopback interface, prints it, and answers until stdin ends.
func Run(extender Extender) {
	mux, noted := http.NewServeMux(), &pauses{}
	mux.HandleFunc("POST /filter", func(w http.ResponseWriter, r *http.Request) {
		handle(w, r, func(args *extenderv1.ExtenderArgs) any { return extender.Filter(args) })
		noted.filtered()
	})
	mux.HandleFunc("POST /prioritize", func(w http.ResponseWriter, r *http.Request) {
		noted.prioritizing()
		handle(w, r, func(args *extenderv1.ExtenderArgs) any { return extender.Prioritize(args) })
	})
	if binder, binds := extender.(Binder); binds {
		mux.HandleFunc("POST /bind", func(w http.ResponseWriter, r *http.Request) {
			handle(w, r, func(args *extenderv1.ExtenderBindingArgs) any { return binder.Bind(args) })
		})
	}
	mux.HandleFunc("GET /pauses", noted.show)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go exitWithParent()
	log.Fatal(http.Serve(listener, mux))
}

func handle[Args any](w http.ResponseWriter, r *http.Request, answer func(*Args) any) {
	var args Args
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer(&args)); err != nil {
		log.Print(err)
	}
}

func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
