// Command eventlogs shows that a change of the engine leaves the events of sessions as they were. It runs the tests of packages with a
// store that also writes each commit's events to a file, and compares the files of two versions of the code. Run it in the root of the
// module, twice before the change and once after it:
//
//	go run ./test/eventlogs -record before-1 ./engine/... ./test/e2e
//	go run ./test/eventlogs -record before-2 ./engine/... ./test/e2e
//	go run ./test/eventlogs -record after ./engine/... ./test/e2e
//	go run ./test/eventlogs before-1 before-2 after
//
// The last argument is compared with those before it. A test counts as steady if all recordings before the change agree about it.
// Ids, times and paths are replaced before the comparison. The exit code is 1 if a steady test differs.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	dir := flag.String("record", "", "run the tests of the packages and record their events in this new `DIR`")
	run := flag.String("run", "", "record only tests that match this `PATTERN`, as for go test -run")
	flag.Parse()
	if err := command(*dir, *run, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "eventlogs:", err)
		os.Exit(1)
	}
}

// command records with dir, and compares the recordings in args without it.
func command(dir, run string, args []string) error {
	if dir != "" {
		return record(dir, run, args)
	}
	if len(args) < 2 {
		return fmt.Errorf("name at least two recordings: those before the change, then the one after it")
	}
	return compare(args[:len(args)-1], args[len(args)-1])
}
