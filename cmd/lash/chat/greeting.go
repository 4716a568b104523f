package chat

import (
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"lashd/internal/termtext"
)

// greeting is what the chat prints when it has opened its first session.
func greeting(cwd string, width int) string {
	head := strong.Render("lash") + faint.Render(" · ") + termtext.OneLine(underHome(cwd), max(width-9, 20))
	return head + "\n" + faint.Render(ansi.Strip(fitted([]string{"Enter sends", "/ lists commands", "@ names a file", "Ctrl-D leaves"}, width)))
}

// underHome returns a path with ~ in place of the home directory.
func underHome(path string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(path, home); ok && err == nil && home != "/" && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return path
}
