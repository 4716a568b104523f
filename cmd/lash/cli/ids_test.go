package cli

import (
	"strings"
	"testing"

	"lashd/cmd/internal/console"
)

func TestIDsByPrefix(t *testing.T) {
	ids := []string{"ses_01aa11", "ses_01aa22", "ses_02bb", "ses_02bb33", "mine"}
	for name, c := range map[string]struct{ text, id, err string }{
		"outside/25 a unique prefix":                        {"ses_01aa1", "ses_01aa11", ""},
		"outside/25 without the type prefix":                {"01aa2", "ses_01aa22", ""},
		"outside/25 a whole id that is a prefix of another": {"ses_02bb", "ses_02bb", ""},
		"outside/25 an id that a client chose":              {"mi", "mine", ""},
		"outside/25 an ambiguous prefix lists the ids":      {"ses_01", "", `2 sessions have an id that begins with "ses_01", such as ses_01aa11 and ses_01aa22`},
		"outside/25 an unknown prefix names the command":    {"ses_9", "", `no session has an id that begins with "ses_9"; lash session lists the ids`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := byPrefix(c.text, "ses_", "session", "lash session", ids)
			if got != c.id || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q, %v; want %q, %q", got, err, c.id, c.err)
			}
		})
	}
}

func TestCommandsTakePrefixes(t *testing.T) {
	p := newPlace(t)
	id := p.session()
	short := strings.TrimPrefix(id[:20], "ses_")
	for _, args := range [][]string{
		{"session", "show", short}, {"tool", short}, {"session", "points", short}, {"session", "diff", short}, {"run", "--session", short, "hi"},
		{"task", "--session", short}, {"trigger", "--owner", short},
	} {
		t.Run("outside/25 "+strings.Join(args[:1], " "), func(t *testing.T) { p.want(0, "", "", args...) })
	}
	p.want(console.ExitFailed, "", "no session has an id that begins with", "session", "show", "ses_zz")
	p.want(0, "", "deleted "+id[:noteID], "session", "delete", short)
}
