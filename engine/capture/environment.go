package capture

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// secretWords are parts of names of variables that hold secrets. Commands do not get these
// variables.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"}

// secretEnds are ends of such names.
var secretEnds = []string{"_PAT", "_AUTH", "_PASS", "_PWD"}

// login matches a URL with a password, as in many database settings.
var login = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^/@\s]*:[^/@\s]+@`) })

// Environment returns the part of the daemon's environment that commands get. It leaves out
// secrets and lashd's own variables. It also leaves out TERM, PWD and OLDPWD, which the
// caller adds.
func Environment(environ []string) []string {
	env := []string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || withheld(strings.ToUpper(name), value) {
			continue
		}
		env = append(env, entry)
	}
	return env
}

// withheld reports whether a variable is left out. name is in upper case.
func withheld(name, value string) bool {
	switch {
	case name == "TERM", name == "PWD", name == "OLDPWD", strings.HasPrefix(name, "LASHD_"):
		return true
	case login().MatchString(value):
		return true
	}
	if slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(name, end) }) {
		return true
	}
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}
