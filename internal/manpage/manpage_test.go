package manpage_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"lashd/internal/manpage"
	"lashd/test/skip"
)

// model is a small command line with everything that pages have.
func model(t *testing.T) *kong.Application {
	t.Helper()
	var c struct {
		Home string `help:"Data directory." env:"SAMPLE_HOME"`
		List struct {
			Name string `arg:"" optional:"" help:"Name."`
			All  bool   `help:"List all \\o/."`
		} `cmd:"" help:"List things."`
		Set struct {
			One struct{} `cmd:"" help:"Set one."`
			Two struct{} `cmd:"" help:"Set two."`
		} `cmd:"" help:"Set things."`
		Secret struct{} `cmd:"" hidden:""`
	}
	parser, err := kong.New(&c, kong.Name("sample"), kong.Description("Do things.\n\nTo start:\n  sample list\n\n  sample set\n\n.hidden files stay."))
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model
}

func TestPages(t *testing.T) {
	pages := manpage.Pages(model(t), "1.2.3", time.Unix(0, 0))
	t.Run("issue/21-3 each command has a page, hidden ones have none", func(t *testing.T) {
		var names []string
		for _, p := range pages {
			names = append(names, p.Name)
		}
		if got, want := strings.Join(names, " "), "sample sample-list sample-set"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	shown := func(p manpage.Page) string {
		mandoc, err := exec.LookPath("mandoc")
		skip.Unless(t, "MANDOC", err == nil, "mandoc is not installed")
		cmd := exec.Command(mandoc, "-Tascii", "-Owidth=80")
		cmd.Stdin = strings.NewReader(p.Text)
		out, err := cmd.Output()
		if err != nil {
			t.Error(err)
		}
		return plain(string(out))
	}
	for i, want := range [][]string{
		{"SAMPLE(1)", "sample - Do things", "sample list\n\n", "\n       .hidden files stay.\n", "--home=STRING\n", "Data directory ($SAMPLE_HOME)."},
		{"sample list [<name>] [flags]\n", "--all  List all \\o/.\n"},
		{"sample set one [flags]\n", "   sample set two\n       Set two.\n"},
	} {
		t.Run("issue/21-3 a page shows the help: "+pages[i].Name, func(t *testing.T) {
			text := shown(pages[i])
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is missing in\n%s", w, text)
				}
			}
		})
		t.Run("issue/21-3 a page has no mistakes: "+pages[i].Name, func(t *testing.T) {
			cmd := exec.Command("mandoc", "-Tlint", "-Wwarning")
			cmd.Stdin = strings.NewReader(pages[i].Text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// plain removes the overprinting that stands for bold and underlined text.
func plain(text string) string {
	var out []rune
	for _, r := range text {
		if r == '\b' {
			out = out[:len(out)-1]
		} else {
			out = append(out, r)
		}
	}
	return string(out)
}
