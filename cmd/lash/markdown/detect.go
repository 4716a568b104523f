package markdown

import (
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
)

// Detect returns the style for a terminal, as far as the environment tells without
// asking the terminal. env has entries such as TERM=xterm. If out is not a
// terminal, the style has no escape sequences, unless CLICOLOR_FORCE is set.
func Detect(out *os.File, env []string) Style {
	style := Style{Theme: ThemeFor(colorprofile.Detect(out, env), background(env))}
	if width, _, err := term.GetSize(out.Fd()); err == nil {
		style.Width = width
	}
	style.Links = style.Theme != Plain && Hyperlinks(env)
	return style
}

// lookup returns the value of a variable, or "".
func lookup(env []string, name string) string {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// background reports whether COLORFGBG, such as 15;0, names a dark background. It
// returns nil if the variable is not set.
func background(env []string) *bool {
	value := lookup(env, "COLORFGBG")
	color, err := strconv.Atoi(value[strings.LastIndexByte(value, ';')+1:])
	if err != nil {
		return nil
	}
	return new(color < 7 || color == 8)
}

// Terminals that open links (OSC 8), by TERM_PROGRAM and by the beginning of TERM.
var (
	linkPrograms  = []string{"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "Tabby"}
	linkTerminals = []string{"xterm-kitty", "xterm-ghostty", "alacritty", "foot", "contour", "wezterm"}
)

// Hyperlinks reports whether a terminal with this environment opens links (OSC 8).
// Terminals cannot be asked. It returns false for an unknown terminal, which might hide where
// a link leads, and for multiplexers, which drop links. FORCE_HYPERLINK=1 or 0
// overrides this.
func Hyperlinks(env []string) bool {
	if force := lookup(env, "FORCE_HYPERLINK"); force != "" {
		return force != "0"
	}
	name := lookup(env, "TERM")
	if lookup(env, "TMUX") != "" || strings.HasPrefix(name, "screen") || strings.HasPrefix(name, "tmux") || name == "dumb" || name == "linux" {
		return false
	}
	for _, p := range linkPrograms {
		if lookup(env, "TERM_PROGRAM") == p {
			return true
		}
	}
	for _, p := range linkTerminals {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	vte, _ := strconv.Atoi(lookup(env, "VTE_VERSION")) // 0 if it is not set
	return vte >= 5001 || lookup(env, "WT_SESSION") != "" || lookup(env, "KONSOLE_VERSION") != ""
}
