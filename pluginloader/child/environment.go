package child

import (
	"slices"
	"strings"
)

// inherited lists the variables of the daemon that every program gets. Variables whose names start
// with LC_ are passed too. Everything else stays with the daemon, because it may hold secrets.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "SYSTEMROOT", "TEMP", "TMP"}

// Environment describes the environment of a plugin program: which variables of the daemon it
// inherits, and which it gets of its own.
type Environment struct {
	Daemon []string          // lashd's environment in the form of os.Environ
	Pass   []string          // names of more variables to inherit
	Set    map[string]string // variables to add or replace
	Root   string            // the plugin's directory; empty: do not set PLUGIN_ROOT and PLUGIN_DATA
	Data   string            // directory for the plugin's own files; empty: none
	Temp   string            // directory for temporary files; empty: the daemon's
}

// List returns the variables in the form of os.Environ. Equal Environments give equal lists, so the
// result can be compared to find out whether a program needs a restart.
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

// isTemporary reports whether a variable names a directory for temporary files.
func isTemporary(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return name == "TMPDIR" || name == "TEMP" || name == "TMP"
}
