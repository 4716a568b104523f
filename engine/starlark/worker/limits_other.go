//go:build !linux

package worker

import (
	"fmt"
	"os"

	"lashd/engine/starlark"
)

// limitProcess cannot limit the memory of a process here, and says so. The checks of the interpreter remain: they bound what a
// cell keeps, and most of what a single function needs.
func limitProcess(starlark.Limits) error {
	fmt.Fprintln(os.Stderr, "lashd worker: this system does not limit the memory of a process; only the checks of the interpreter bound a cell")
	return nil
}

// allowCPU does nothing here: the watchdog of the interpreter ends the process.
func allowCPU(starlark.Limits) {}
