package daemon

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lmittmann/tint"

	"lashd/cmd/internal/console"
)

// Version is the version of this build, as lashd version prints it and the daemon
// reports it to clients. The linker may set it.
var Version = "0.1.0"

// Globals are the flags that all commands have. Each can also be set by an
// environment variable; the flag wins.
type Globals struct {
	Home    string `help:"Data directory; default $$XDG_DATA_HOME/lashd or ~/.local/share/lashd." env:"LASHD_HOME" placeholder:"DIR"`
	Socket  string `help:"Unix socket of the daemon; default run/lashd.sock in the --home directory, or $$XDG_RUNTIME_DIR/lashd/lashd.sock without --home." env:"LASHD_SOCKET" placeholder:"PATH"`
	Verbose bool   `help:"Add detail to an error: its causes, its kind and the log of the daemon."`
	Log     string `help:"Lowest level to log: debug, info, warn or error." env:"LASHD_LOG" default:"info" enum:"debug,info,warn,error"`
}

// Detail returns the lines that --verbose adds to an error; none without it. e may be nil.
func (c *Globals) Detail(e *Environment, err error) []string {
	if !c.Verbose || err == nil {
		return nil
	}
	lines := console.Detail(err)
	if e != nil {
		lines = append(lines, "log: "+e.LogFile())
	}
	return lines
}

// Environment has the paths, the log and the state that all commands of a process
// share. Its fields are set before a command runs.
type Environment struct {
	Home   string // data directory, absolute
	Socket string // address of the daemon's socket
	Named  bool   // the user named the socket, so no other address is tried
	level  slog.Level
	Log    *slog.Logger
	Warned bool            // a note about another version of the daemon was printed
	Name   string          // name of this program: lash or lashd
	Hears  <-chan struct{} // closed once the signal handler is installed
}

// Note prints a message for the user on stderr, with the name of the program in front, in lines that fit the terminal. Results never go
// through Note.
func (e *Environment) Note(format string, args ...any) {
	console.Stderr(e.Name + ": " + fmt.Sprintf(format, args...))
}

// Environment evaluates the global flags and the environment variables that
// replace them. It touches no files.
func (c *Globals) Environment(name string) (*Environment, error) {
	user, err := os.UserHomeDir()
	if err != nil && (c.Home == "" || c.Socket == "") {
		return nil, err
	}
	data := cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(user, ".local", "share"))
	e := &Environment{Name: name, Home: cmp.Or(c.Home, filepath.Join(data, "lashd")), Named: c.Socket != ""}
	if e.Home, err = filepath.Abs(e.Home); err != nil {
		return nil, err
	}
	e.Socket = cmp.Or(c.Socket, e.DefaultSocket(c.Home != ""))
	if err := e.level.UnmarshalText([]byte(c.Log)); err != nil {
		return nil, err
	}
	e.Log = slog.New(tint.NewTextHandler(os.Stderr, &tint.Options{Level: e.level, TimeFormat: time.TimeOnly, NoColor: !console.Terminal(os.Stderr)}))
	return e, nil
}

// DefaultSocket returns the default address of the socket: in XDG_RUNTIME_DIR or,
// if the data directory was named, in that. So daemons of different data
// directories do not collide. A path that is too long for a socket is replaced by
// one in the temporary directory, with a hash of the data directory in its name.
func (e *Environment) DefaultSocket(chosen bool) string {
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" && !chosen {
		return filepath.Join(runtime, "lashd", "lashd.sock")
	}
	inside := filepath.Join(e.Home, "run", "lashd.sock")
	if len(inside) <= 100 {
		return inside
	}
	return filepath.Join(os.TempDir(), "lashd-"+strconv.Itoa(os.Getuid()), strconv.FormatUint(uint64(hash(e.Home)), 36)+".sock")
}

// Scratch is the directory for temporary files and caches of sandboxed commands.
func (e *Environment) Scratch() string { return filepath.Join(e.Home, "sandbox") }

// hash returns the 32-bit FNV-1a hash of s. The socket address depends on it, so
// it must not change.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// UserPlugins returns the plugin directories of the user, which are trusted
// without approval. They need not exist.
func UserPlugins() (dirs []string) {
	if dir, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "lashd", "plugins"))
	}
	if dir, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, ".agents", "plugins"))
	}
	return dirs
}

// UserLayout returns the directory with the skills, commands, agents and settings of
// the user for other agents, in .claude and .agents; empty: it is unknown.
func UserLayout() string {
	dir, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return dir
}
