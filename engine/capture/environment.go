package capture

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// secretWords mark a variable whose value a command has no business to print.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"}

// login is a URL with a password in it, as in many database settings.
var login = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^/@\s]*:[^/@\s]+@`) })

// Environment is what of the daemon's environment a command gets: no secrets, nothing of lashd's own, and nothing about a terminal
// or a directory, which whoever starts it adds.
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

func withheld(name, value string) bool {
	switch {
	case name == "TERM", name == "PWD", name == "OLDPWD", strings.HasPrefix(name, "LASHD_"):
		return true
	case login().MatchString(value):
		return true
	}
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}
