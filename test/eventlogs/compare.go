package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// recording maps each test to the logs of its sessions. A log is the normalized
// events of a session, one per line; the logs are sorted.
type recording map[string][]string

// volatile matches the parts of events that differ between two runs of one test.
var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`"[A-Za-z]*Ms":\d+`), `"ms":0`},
	{regexp.MustCompile(`\b([a-z]{2,4}_)+[0-9a-f]{12,}`), "ID"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "ID"},
	{regexp.MustCompile(`\b[0-9a-f]{32,}\b`), "HASH"},
	{regexp.MustCompile(`/tmp/[^"\s]*`), "PATH"},
	{regexp.MustCompile(`\bpid:?\s?\d+`), "PID"},
	{regexp.MustCompile(`(127\.0\.0\.1|localhost|\[::1\]):\d+`), "ADDRESS"},
}

// testOf returns the test that a store belongs to, from the name of its temporary
// directory.
var testOf = regexp.MustCompile(`/(Test[^/]*?)\d*/`)

// compare reads the recordings and reports tests whose events differ between
// before and after. Tests that differ among the recordings before are ignored,
// because their events are not deterministic.
func compare(before []string, after string) error {
	steady, err := read(before[0])
	if err != nil {
		return err
	}
	unsteady := map[string]bool{}
	for _, dir := range before[1:] {
		next, err := read(dir)
		if err != nil {
			return err
		}
		for test := range next {
			unsteady[test] = unsteady[test] || !slices.Equal(steady[test], next[test])
		}
		for test := range steady {
			unsteady[test] = unsteady[test] || !slices.Equal(steady[test], next[test])
		}
	}
	now, err := read(after)
	if err != nil {
		return err
	}
	return report(steady, now, unsteady)
}

// report prints the tests that differ, with the first difference of each, and
// returns an error if there are any.
func report(before, after recording, unsteady map[string]bool) error {
	same, differ := 0, []string(nil)
	for test := range before {
		switch {
		case unsteady[test]:
		case slices.Equal(before[test], after[test]):
			same++
		default:
			differ = append(differ, test)
		}
	}
	slices.Sort(differ)
	for _, test := range differ {
		fmt.Printf("%s: %s\n", test, difference(before[test], after[test]))
	}
	unstable := 0
	for _, u := range unsteady {
		if u {
			unstable++
		}
	}
	fmt.Printf("%d tests have the same events, %d differ, %d differ from run to run before the change\n", same, len(differ), unstable)
	if len(differ) > 0 {
		return fmt.Errorf("%d tests have different events", len(differ))
	}
	return nil
}

// difference describes the first line in which the logs of a test differ.
func difference(before, after []string) string {
	if len(before) != len(after) {
		return fmt.Sprintf("%d sessions before, %d after", len(before), len(after))
	}
	for i := range before {
		a, b := strings.Split(before[i], "\n"), strings.Split(after[i], "\n")
		for j := range max(len(a), len(b)) {
			if x, y := at(a, j), at(b, j); x != y {
				return fmt.Sprintf("session %d, event %d\n  before: %.300s\n  after:  %.300s", i+1, j+1, x, y)
			}
		}
	}
	return ""
}

// at returns line i, or "(none)" after the last one.
func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(none)"
}

// read reads the recording in dir. The files of a recording are those of test
// processes; the oldest comes first, so that a session that several daemons served
// is in order.
func read(dir string) (recording, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		return nil, cmp.Or(err, fmt.Errorf("%s has no recording", dir))
	}
	logs := map[[2]string][]string{}
	var order [][2]string
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(modified(a), modified(b)), cmp.Compare(a, b)) })
	for _, file := range files {
		if order, err = readFile(file, logs, order); err != nil {
			return nil, err
		}
	}
	all := recording{}
	for _, key := range order {
		test := key[0]
		if m := testOf.FindStringSubmatch(test + "/"); m != nil {
			test = m[1]
		}
		all[test] = append(all[test], strings.Join(logs[key], "\n"))
	}
	for _, sessions := range all {
		slices.Sort(sessions)
	}
	return all, nil
}

func modified(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// readFile adds the events of a file to logs, by store and session. order has the
// keys of logs in order of their first event. A last line without a newline, from
// a killed process, is ignored.
func readFile(file string, logs map[[2]string][]string, order [][2]string) ([][2]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return order, nil
		}
		var e struct {
			Store, Session string
			Body           json.RawMessage
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		key := [2]string{e.Store, e.Session}
		if logs[key] == nil {
			order = append(order, key)
		}
		logs[key] = append(logs[key], normal(string(e.Body)))
	}
}

// normal replaces the volatile parts of an event.
func normal(event string) string {
	for _, v := range volatile {
		event = v.pattern.ReplaceAllString(event, v.with)
	}
	return event
}
