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

// environment has the paths, the log and the state that all commands of a process
// share. Its fields are set before a command runs.
type environment struct {
	home   string // data directory, absolute
	socket string // address of the daemon's socket
	named  bool   // the user named the socket, so no other address is tried
	level  slog.Level
	log    *slog.Logger
	warned bool // a note about another version of the daemon was printed

	extra   Extra
	hears   <-chan struct{} // closed once the signal handler is installed
	opening *opening        // startup of the daemon in this process; nil in other commands
}

// note prints a message for the user on stderr, with "lashd:" in front. Results
// never go through note.
func (e *environment) note(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "lashd:", printable(fmt.Sprintf(format, args...)))
}

// environment evaluates the global flags and the environment variables that
// replace them. It touches no files.
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

// defaultSocket returns the default address of the socket: in XDG_RUNTIME_DIR or,
// if the data directory was named, in that. So daemons of different data
// directories do not collide. A path that is too long for a socket is replaced by
// one in the temporary directory, with a hash of the data directory in its name.
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

// hash returns the 32-bit FNV-1a hash of s. The socket address depends on it, so
// it must not change.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}
