package child

import (
	"slices"
	"strings"
)

// inherited are the variables that every program gets; all that begin with LC_ come with them.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "SYSTEMROOT", "TEMP", "TMP"}

// Environment is what a program of a plugin gets of the daemon's environment, and what is its own.
type Environment struct {
	Daemon []string          // the whole environment of lashd, as os.Environ gives it
	Pass   []string          // names of variables that it gets of these besides the usual few
	Set    map[string]string // variables that it gets besides, or instead
	Root   string            // the plugin's directory; empty: it is not told of any
	Data   string            // where it may keep files; empty: nowhere
	Temp   string            // where it may keep files for a while; empty: where all do
}

// List is the environment as a program is started with it, the same for the same Environment.
func (e Environment) List() []string {
	var env []string
	for _, v := range e.Daemon {
		name, _, _ := strings.Cut(v, "=")
		if _, own := e.Set[name]; own {
			continue
		}
		if slices.Contains(inherited, name) || slices.Contains(e.Pass, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, v)
		}
	}
	for name, value := range e.Set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	if e.Temp != "" {
		env = append(slices.DeleteFunc(env, isTemporary), "TMPDIR="+e.Temp)
	}
	if e.Root == "" {
		return env
	}
	// An interpreter that wrote into the plugin's directory would make it another one.
	return append(env, "PYTHONDONTWRITEBYTECODE=1", "PLUGIN_ROOT="+e.Root, "CLAUDE_PLUGIN_ROOT="+e.Root, "PLUGIN_DATA="+e.Data)
}

// isTemporary tells whether a variable says where files are kept for a while.
func isTemporary(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return name == "TMPDIR" || name == "TEMP" || name == "TMP"
}
