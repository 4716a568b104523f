package diagnosis

import (
	"fmt"
	"os"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Diagnosis is the JSON output of lash doctor and lashd check. The ids of checks are stable.
// Daemon and Diagnostics are set if the daemon is running, and Found if the
// database was verified.
type Diagnosis struct {
	Version     string                      `json:"version"`
	DataDir     string                      `json:"dataDir"`
	Healthy     bool                        `json:"healthy"`
	Checks      []Check                     `json:"checks"`
	Daemon      *protocol.StatusResult      `json:"daemon,omitempty"`
	Diagnostics *protocol.DiagnosticsResult `json:"diagnostics,omitempty"`
	Found       *persistence.Report         `json:"database,omitempty"`
}

// Check is the result of one check. Detail says what was found, and Remedy how to
// fix a problem. One id may occur several times, such as model and plugin.
type Check struct {
	ID     string `json:"id"` // daemon, directory, filesystem, config, model, disk, scratch, files, lock, database, rollback, fix, sandbox, containment, watch, plugin
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Print prints the checks as lines or as JSON. A failed check has a second line with its remedy, and so has a passed one that is no success,
// such as one of a file that changed. On a terminal, long texts continue below their beginning.
func (d *Diagnosis) Print(json bool) error {
	if json {
		return console.PrintJSON(d)
	}
	names := 0
	for _, check := range d.Checks {
		names = max(names, len(check.ID))
	}
	indent := len("WRONG") + names + 2*len(gap)
	text := func(s string) string {
		return console.Hanging(console.Printable(s), console.Columns(os.Stdout), indent)
	}
	for _, check := range d.Checks {
		r := check.result()
		fmt.Fprintf(console.Stdout, "%s%s%s%-*s%s%s\n", r.paint.On(os.Stdout, r.word), strings.Repeat(" ", len("WRONG")-len(r.word)), gap, names, check.ID, gap, text(check.Detail))
		if check.Remedy != "" {
			fmt.Fprintf(console.Stdout, "%*s%s\n", indent, "", text(r.advice+check.Remedy))
		}
	}
	return nil
}

// gap is the space between the columns of the checks.
const gap = "  "

// result is how a check went, as it is printed.
type result struct {
	word, advice string
	paint        console.Paint
}

// result returns how the check went. A passed check with a remedy is a note.
func (c Check) result() result {
	switch {
	case !c.OK:
		return result{"WRONG", "To fix: ", console.Bad}
	case c.Remedy != "":
		return result{"note", "To do: ", console.Waiting}
	}
	return result{"ok", "", console.Good}
}

// Note adds a check, which has failed if err is not nil, and reports whether it
// has passed. detail is the text of a passed check, remedy the advice for a failed
// one.
func (d *Diagnosis) Note(id, detail string, err error, remedy string) bool {
	c := Check{ID: id, OK: err == nil, Detail: detail}
	if err != nil {
		c.Detail, c.Remedy, d.Healthy = err.Error(), remedy, false
	}
	d.Checks = append(d.Checks, c)
	return err == nil
}

// Result returns the error that reports a problem by the exit code, or nil.
func (d *Diagnosis) Result() error {
	if !d.Healthy {
		return console.Exit(console.ExitFailed, nil)
	}
	return nil
}
