package markdown_test

import (
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"lashd/cmd/lash/markdown"
)

func TestDetect(t *testing.T) {
	t.Run("part/12 themes follow the colors and the background of the terminal", func(t *testing.T) {
		for _, test := range []struct {
			profile colorprofile.Profile
			dark    *bool
			want    markdown.Theme
		}{
			{colorprofile.NoTTY, new(true), markdown.Plain}, {colorprofile.ASCII, new(true), markdown.Mono}, {colorprofile.ANSI, new(true), markdown.Palette},
			{colorprofile.ANSI256, nil, markdown.Palette}, {colorprofile.ANSI256, new(true), markdown.Dark}, {colorprofile.TrueColor, new(false), markdown.Light},
		} {
			if got := markdown.ThemeFor(test.profile, test.dark); got != test.want {
				t.Errorf("the theme of %v is %d, want %d", test.profile, got, test.want)
			}
		}
	})
	t.Run("part/12 links are for terminals that open them", func(t *testing.T) {
		for env, want := range map[string]bool{
			"TERM=xterm-256color": false, "TERM=xterm-kitty": true, "TERM=xterm-256color TERM_PROGRAM=vscode": true, "TERM=screen-256color TERM_PROGRAM=vscode": false,
			"TERM=xterm-256color VTE_VERSION=6003": true, "VTE_VERSION=4002": false, "TERM=alacritty TMUX=/tmp/x": false, "TERM=dumb FORCE_HYPERLINK=1": true,
			"TERM=xterm-kitty FORCE_HYPERLINK=0": false, "WT_SESSION=x": true, "": false, "TERM_PROGRAM=Apple_Terminal TERM=xterm-256color": false,
		} {
			if got := markdown.Hyperlinks(strings.Fields(env)); got != want {
				t.Errorf("%q has links: %t, want %t", env, got, want)
			}
		}
	})
	t.Run("part/12 a file gets no escape sequences", func(t *testing.T) {
		file, err := os.Create(t.TempDir() + "/out")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		style := markdown.Detect(file, []string{"TERM=xterm-kitty", "COLORTERM=truecolor", "COLORFGBG=0;15"})
		if style.Theme != markdown.Plain || style.Links || style.Width != 0 {
			t.Errorf("the style is %+v", style)
		}
		style = markdown.Detect(file, []string{"TERM=xterm-kitty", "CLICOLOR_FORCE=1", "COLORTERM=truecolor", "COLORFGBG=0;15"})
		if style.Theme != markdown.Light || !style.Links {
			t.Errorf("with CLICOLOR_FORCE the style is %+v", style)
		}
	})
}
