package cli

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lmittmann/tint"
)

// environment is where this lashd lives.
type environment struct {
	home   string
	socket string
	named  bool // somebody said which socket it is, so that the daemon is looked for nowhere else
	level  slog.Level
	log    *slog.Logger
	warned bool // that the daemon is of another version

	extra   Extra
	hears   <-chan struct{} // closed once signals are heard
	opening *opening        // of the daemon that this process is
}

// note tells a person something on stderr that is no result.
func (e *environment) note(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "lashd:", printable(fmt.Sprintf(format, args...)))
}

func (c *globals) environment() (*environment, error) {
	user, err := os.UserHomeDir()
	if err != nil && (c.Home == "" || c.Socket == "") {
		return nil, err
	}
	data := cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(user, ".local", "share"))
	e := &environment{home: cmp.Or(c.Home, filepath.Join(data, "lashd")), named: c.Socket != ""}
	if e.home, err = filepath.Abs(e.home); err != nil {
		return nil, err
	}
	e.socket = cmp.Or(c.Socket, e.defaultSocket(c.Home != ""))
	if err := e.level.UnmarshalText([]byte(c.Log)); err != nil {
		return nil, err
	}
	e.log = slog.New(tint.NewTextHandler(os.Stderr, &tint.Options{Level: e.level, TimeFormat: time.TimeOnly, NoColor: !terminal(os.Stderr)}))
	return e, nil
}

// defaultSocket lies in the runtime directory of the user, or in the data directory if that was chosen.
func (e *environment) defaultSocket(chosen bool) string {
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" && !chosen {
		return filepath.Join(runtime, "lashd", "lashd.sock")
	}
	inside := filepath.Join(e.home, "run", "lashd.sock")
	if len(inside) <= 100 {
		return inside
	}
	return filepath.Join(os.TempDir(), "lashd-"+strconv.Itoa(os.Getuid()), strconv.FormatUint(uint64(hash(e.home)), 36)+".sock")
}

func hash(s string) uint32 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}
