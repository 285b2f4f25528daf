package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processorTime returns what the processes have used so far, in nanoseconds; 0 if unknown.
// Unlike the time of a call, it hardly depends on what else the machine does.
func processorTime(pids []int) int64 {
	total := int64(0)
	for _, pid := range pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, file := range threads {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // the thread has ended
			}
			used, _, _ := strings.Cut(string(text), " ")
			nanoseconds, _ := strconv.ParseInt(used, 10, 64)
			total += nanoseconds
		}
	}
	return total
}
