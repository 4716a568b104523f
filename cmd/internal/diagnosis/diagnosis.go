package diagnosis

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

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

// Print prints the checks as lines or as JSON. A failed check has a second line
// with its remedy.
func (d *Diagnosis) Print(json bool) error {
	if json {
		return console.PrintJSON(d)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, check := range d.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", map[bool]string{true: "ok", false: "WRONG"}[check.OK], check.ID, console.Printable(check.Detail))
		if check.Remedy != "" {
			fmt.Fprintf(w, "\t\tTo fix: %s\n", console.Printable(check.Remedy))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		fmt.Fprint(console.Stdout, painted(line))
	}
	return nil
}

// painted returns a line of the table with its first word in the colour of the result.
func painted(line string) string {
	for word, paint := range map[string]console.Paint{"ok": console.Good, "WRONG": console.Bad} {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			return paint.On(os.Stdout, word) + " " + rest
		}
	}
	return line
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
